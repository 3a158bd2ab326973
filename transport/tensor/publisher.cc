#include "transport/tensor/publisher.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/take_within.h"
#include "transport/tensor/row_copy.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kWords = 16;                   // one for each order that is answered, and the two of the end
constexpr Duration kAnswer = Duration::seconds(10);  // of the owner's thread, beyond what it waits for
constexpr std::size_t kAlignment = 4'096;

Error invalid(std::string words) { return {ErrorCode::kInvalid, std::move(words)}; }

// From memory with such strides into what is lent for it. As if it were read from there: both sides of each copy are
// changed for one another.
Result<std::vector<Copy>> plan_put(const TensorKind& tensor, const Box& box, const Extents& strides) {
  MONARCH_ASSIGN(auto copies,
                 make_plan({{.box = box}}, {{.box = box, .strides = strides}}, element_bytes(tensor.dtype)));
  for (Copy& copy : copies) {
    std::swap(copy.source, copy.destination);
    for (Copy::Loop& loop : copy.loops) std::swap(loop.source, loop.destination);
  }
  return copies;
}

}  // namespace

Result<std::unique_ptr<Publisher>> Publisher::open(OwnerThread& owner, PublicationOptions options, CudaEnd cuda) {
  if (options.name.empty() || options.name.size() > kPublicationNameBytes) {
    return invalid(text("a publication's name has 1 to ", kPublicationNameBytes, " bytes"));
  }
  if (!options.publishers.contains(owner.rank().rank)) {
    return invalid(text(owner.rank().name(), " is none of the publishers of ", printable(options.name)));
  }
  MONARCH_ASSIGN(auto inbox, Inbox<PublisherWord>::create(kWords));
  const PublisherWords words = std::move(inbox);
  owner.give(owner_order::Open{options, words});
  return std::unique_ptr<Publisher>(new Publisher(owner, std::move(options), words, std::move(cuda)));
}

Publisher::~Publisher() {
  abandon();
  if (!closed_) owner_.give(owner_order::Close{words_});
}

Status Publisher::usable() const {
  if (unfit_) return invalid(*unfit_);
  if (closed_) return invalid(text(printable(options_.name), " is closed"));
  return {};
}

Result<PublisherWord> Publisher::hear(Instant until) {
  if (heard_.empty()) heard_ = take_within(*words_, until);
  if (heard_.empty()) {
    return Error{ErrorCode::kTimeout, text("the thread for readers of ", printable(options_.name), " does not answer")};
  }
  PublisherWord word = std::move(heard_.front());
  heard_.erase(heard_.begin());
  if (const auto* const unfit = std::get_if<publisher_word::Unfit>(&word)) unfit_ = unfit->text;
  return word;
}

// ---- A version.

Status Publisher::begin(std::uint64_t number) {
  MONARCH_TRY(usable());
  if (writing_) return invalid(text("version ", number_, " of ", printable(options_.name), " is being written"));
  MONARCH_TRY(puts_.begin());
  owner_.give(owner_order::Begin{words_, number});
  const Instant until = boot_now() + options_.owner.patience + kAnswer;
  for (;;) {
    MONARCH_ASSIGN(PublisherWord word, hear(until));
    MONARCH_TRY(usable());
    if (const auto* const refused = std::get_if<publisher_word::Refused>(&word)) {
      return invalid(text(printable(options_.name), ": ", refused->text));
    }
    auto* const write = std::get_if<publisher_word::Write>(&word);
    if (write == nullptr) continue;
    slot_ = std::move(write->memory);
    break;
  }
  writing_ = true;
  number_ = number;
  put_.clear();
  if (slot_ != nullptr) slot_->begin();
  return {};
}

// For all versions but the first; nobody reads it before it is told of.
Status Publisher::take_memory() {
  if (slot_ != nullptr) return {};
  const auto readers = puts_.is_used() ? LentMemory::Readers::kMayPin : LentMemory::Readers::kOnlyRead;
  MONARCH_ASSIGN(slot_, Slot::make(layout_.bytes(), readers));
  slot_->begin();
  return {};
}

Result<char*> Publisher::lend_aside(const TensorKind& tensor, const Box& box, std::uint64_t bytes) {
  MONARCH_ASSIGN(const std::uint64_t offset, layout_.put(tensor, box, owner_.rank().rank));
  const std::size_t rounded = (static_cast<std::size_t>(bytes) / kAlignment + 1) * kAlignment;
  Aside aside{.bytes = {}, .size = bytes, .offset = offset};
  aside.bytes.reset(static_cast<char*>(std::aligned_alloc(kAlignment, rounded)));
  if (aside.bytes == nullptr) return Error{ErrorCode::kBusy, text("no memory of ", amount_text(bytes), " for a part")};
  aside_->push_back(std::move(aside));
  return aside_->back().bytes.get();
}

Result<char*> Publisher::lend_slot(const TensorKind& tensor, const Box& box) {
  const TensorPart* const part = layout_.find(tensor.name, box);
  const TensorKind* const kind = layout_.kind(tensor.name);
  if (part == nullptr || kind == nullptr) {
    return invalid(text("tensor ", printable(tensor.name), ": ", to_text(box), " is not in the first version of ",
                        printable(options_.name), ", and all have the same parts"));
  }
  if (*kind != tensor) {
    return invalid(text("tensor ", printable(tensor.name), " is ", to_text(kind->dtype), ' ', to_text(kind->shape),
                        " in the first version, and ", to_text(tensor.dtype), ' ', to_text(tensor.shape), " here"));
  }
  if (put_.contains(part)) {
    return invalid(text("tensor ", printable(tensor.name), ": ", to_text(box), " is put twice"));
  }
  MONARCH_TRY(take_memory());
  put_.insert(part);
  return slot_->start() + part->offset;
}

Result<char*> Publisher::lend(const TensorKind& tensor, const Box& box) {
  MONARCH_TRY(usable());
  if (!writing_) return invalid(text("no version of ", printable(options_.name), " is being written"));
  if (fixed_) return lend_slot(tensor, box);
  const auto count = elements(box.size);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, element_bytes(tensor.dtype), &bytes)) {
    return invalid(text("tensor ", printable(tensor.name), ": ", to_text(box), " has more bytes than can be counted"));
  }
  return lend_aside(tensor, box, bytes);
}

Status Publisher::put(const TensorKind& tensor, const Box& box, const char* data, const Extents& strides) {
  MONARCH_TRY(check_wanted(tensor, box, strides));
  MONARCH_ASSIGN(char* const to, lend(tensor, box));
  MONARCH_ASSIGN(const auto copies, plan_put(tensor, box, strides));
  for (const Copy& copy : copies) copy_rows(copy, data, to, way_for(copy.bytes()));
  return {};
}

Status Publisher::put_device(const TensorKind& tensor, const Box& box, const DeviceMemory& from,
                             const Extents& strides) {
  MONARCH_TRY(check_wanted(tensor, box, strides));
  const bool is_empty = elements(box.size) == 0;
  const Status known = is_empty ? Status() : puts_.check(from);
  if (!known.ok()) {
    return Error{known.error().code, text("tensor ", printable(tensor.name), ": ", known.error().message)};
  }
  MONARCH_ASSIGN(char* const to, lend(tensor, box));
  if (is_empty) return {};
  if (slot_ != nullptr && fixed_) puts_.pin(*slot_);
  MONARCH_ASSIGN(const auto copies, plan_put(tensor, box, strides));
  const Status put = puts_.put(copies, from, to);
  if (put.ok()) return {};
  return Error{put.error().code, text("tensor ", printable(tensor.name), ": ", put.error().message)};
}

Status Publisher::put_as(const TensorKind& tensor, const Dtype& as, const Box& box, const char* data,
                         const Extents& strides) {
  if (tensor.dtype == as) return put(tensor, box, data, strides);
  if (tensor.dtype != kFloat32 || as != kBfloat16) {
    return invalid(text("tensor ", printable(tensor.name), ": ", to_text(tensor.dtype), " is not made into ",
                        to_text(as), "; float32 is made into bfloat16"));
  }
  MONARCH_TRY(check_wanted(tensor, box, strides));
  TensorKind rounded = tensor;
  rounded.dtype = as;
  MONARCH_ASSIGN(char* const to, lend(rounded, box));
  MONARCH_ASSIGN(const auto copies,
                 make_plan({{.box = box}}, {{.box = box, .strides = strides}}, element_bytes(tensor.dtype)));
  for (const Copy& copy : copies) {
    for_each_row(copy, [&](std::uint64_t target, std::uint64_t source) {
      round_to_bfloat16(to + target / 2, data + source, static_cast<std::size_t>(copy.row) / sizeof(float));
    });
  }
  return {};
}

Status Publisher::check_whole() const {
  if (layout_.index().parts.empty()) return invalid(text("version ", number_, " has nothing in it"));
  if (!fixed_) return {};
  for (const TensorPart& part : layout_.index().parts) {
    if (put_.contains(&part)) continue;
    return invalid(text("version ", number_, " of ", printable(options_.name), " lacks ", to_text(part.box), " of ",
                        printable(layout_.index().tensors[part.tensor].name), ", which the first version has"));
  }
  return {};
}

Status Publisher::commit(Duration patience) {
  MONARCH_TRY(usable());
  if (!writing_) return invalid(text("no version of ", printable(options_.name), " is being written"));
  Status ready = check_whole();
  if (ready.ok()) ready = puts_.wait(number_, patience);
  if (ready.ok()) ready = take_memory();
  if (!ready.ok()) {
    abandon();
    return ready;
  }
  for (const Aside& aside : *aside_) {
    copy_row(slot_->start() + aside.offset, aside.bytes.get(), static_cast<std::size_t>(aside.size),
             way_for(aside.size));
  }
  slot_->commit(number_);
  owner_.give(owner_order::Commit{words_, std::move(slot_), fixed_ ? std::nullopt : std::optional(layout_.index())});
  aside_->clear();
  fixed_ = true;
  writing_ = false;
  return {};
}

void Publisher::abandon() {
  if (!std::exchange(writing_, false)) return;
  if (!fixed_) layout_ = {};
  // GPUs may fill it still: nobody else has it until they do not.
  const bool kept = puts_.is_under_way();
  if (kept && fixed_) puts_.leave(slot_);
  if (kept && !fixed_) puts_.leave(std::exchange(aside_, std::make_shared<std::vector<Aside>>()));
  aside_->clear();
  slot_.reset();
  owner_.give(owner_order::Abandon{words_, kept});
}

Status Publisher::close() {
  MONARCH_TRY(usable());
  abandon();
  closed_ = true;
  Status how;
  if (fixed_) {
    owner_.give(owner_order::End{words_});
    const Instant until = boot_now() + options_.linger + kAnswer;
    for (;;) {
      const auto word = hear(until);
      // Where the registrar cannot be reached nobody is there to say that it is enough.
      if (!word.ok() || std::holds_alternative<publisher_word::Released>(*word)) break;
      if (!unfit_) continue;
      how = invalid(*unfit_);
      break;
    }
  }
  owner_.give(owner_order::Close{words_});
  return how;
}

}  // namespace monarch::tensor
