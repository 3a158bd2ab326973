// NCCL in the C ABI of libmonarch-rank.so (monarch/tensors_v1.h): a communicator of a group that has met.

#include <monarch/tensors_v1.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/tensor/cuda/load.h"
#include "transport/tensor/nccl/load.h"
#include "transport/tensor/nccl/nccl_group.h"
#include "worker/library/c_words.h"
#include "worker/library/group.h"
#include "worker/library/tensor_words.h"

struct monarch_tensors_nccl {
  monarch::TensorSession* session = nullptr;
  std::uint64_t generation = 0;  // of the epoch
  std::unique_ptr<monarch::tensor::NcclGroup> is;
};

namespace {

static_assert(MONARCH_TENSORS_NCCL_ID == monarch::tensor::kNcclIdBytes);

// The group by which members meet at the end.
constexpr const char* kEnd = "/end";

// A group that has met, as a communicator hears of it. It outlives the communicator.
class MetTie final : public monarch::tensor::GroupTie {
 public:
  explicit MetTie(const monarch_tensors_group& group)
      : session_(*group.session), group_(*group.is), name_(group.name), news_(group.is->news()) {}

  std::optional<std::string> lost() override { return why(news_->told()); }
  void wait(const std::function<bool()>& stop) override {
    const auto ended = [&](const monarch::tensor::GroupNews::Told& told) { return why(told) || stop(); };
    (void)news_->wait(ended, monarch::Instant::never());
  }
  void wake() override {
    news_->tell([](monarch::tensor::GroupNews::Told&) {});
  }
  monarch::Status finish(monarch::Instant until) override {
    std::vector<monarch::GroupWish> all;
    for (const monarch::tensor::MemberRun& run : group_.members().runs()) {
      all.push_back({.mesh = run.mesh, .ranks = std::vector<std::uint32_t>(run.count)});
      std::iota(all.back().ranks.begin(), all.back().ranks.end(), run.first);
    }
    monarch::Group::Options options{.waiting = monarch::Group::say_who_is_missing(name_ + kEnd),
                                    .gives_up = [this] { return lost().has_value(); }};
    if (until != monarch::Instant::never()) options.timeout = until - monarch::boot_now();
    const auto met = session_.meet(name_ + kEnd, all, options);
    return met.ok() ? monarch::Status() : monarch::Status(met.error());
  }
  void leave(const std::string& /*why*/) override { group_.leave(); }  // others are told who has left, and no more

 private:
  static std::optional<std::string> why(const monarch::tensor::GroupNews::Told& told) {
    if (told.lost) return told.lost;
    if (told.left) return "this member has left the group";
    return std::nullopt;
  }

  monarch::TensorSession& session_;
  monarch::Group& group_;
  const std::string name_;
  const monarch::tensor::GroupNewsPtr news_;
};

monarch::Result<monarch::tensor::SharedNccl> find_nccl() {
  return monarch::tensor::load_nccl(::getenv(monarch::tensor::kNcclVariable));
}

monarch::Result<monarch::tensor::NcclWork> read_work(const monarch_tensors_nccl_work_v1& given) {
  using monarch::tensor::NcclCall;
  using monarch::tensor::NcclOp;
  const auto invalid = [](const char* words) { return monarch::Error{monarch::ErrorCode::kInvalid, words}; };
  if (given.struct_size < sizeof given || given.reserved != 0) return invalid("work with another struct_size");
  if (given.call > MONARCH_TENSORS_NCCL_RECV) return invalid("a call that NCCL does not have");
  if (given.op > MONARCH_TENSORS_NCCL_AVERAGE) return invalid("an operation that NCCL does not have");
  return monarch::tensor::NcclWork{.call = static_cast<NcclCall>(given.call),
                                   .from = given.from,
                                   .to = given.to,
                                   .count = given.count,
                                   .dtype = {given.dtype_code, given.dtype_bits, given.dtype_lanes},
                                   .op = static_cast<NcclOp>(given.op),
                                   .peer = given.peer,
                                   .stream = given.stream};
}

// In the process that has opened it.
template <class Run>
int in_process(monarch_tensors_nccl* nccl, monarch_tensors_error_v1* error, const Run& run) {
  return monarch::guarded(error, [&] {
    const monarch::Status ours = nccl->session->check_process();
    const monarch::Status status = ours.ok() ? run() : ours;
    const int code = monarch::done(error, status);
    if (code == MONARCH_TENSORS_PEER_GONE && error != nullptr && error->struct_size >= sizeof *error) {
      error->generation = nccl->generation;
    }
    return code;
  });
}

monarch::Duration timeout_of(std::int64_t milliseconds) {
  return monarch::milliseconds_or(milliseconds, monarch::Duration::forever());
}

}  // namespace

extern "C" {

int monarch_tensors_nccl_id(void* id, monarch_tensors_error_v1* error) {
  return monarch::guarded(error, [&] {
    const auto nccl = find_nccl();
    if (!nccl.ok()) return monarch::fail(error, nccl.error());
    const auto made = (*nccl)->make_id();
    if (!made.ok()) return monarch::fail(error, made.error());
    std::memcpy(id, made->data(), made->size());
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_nccl_open(monarch_tensors_group* group, int32_t device, int64_t timeout_ms,
                              monarch_tensors_nccl** nccl, monarch_tensors_error_v1* error) {
  return monarch::guarded(error, [&] {
    const monarch::Status ours = group->session->check_process();
    if (!ours.ok()) return monarch::fail(error, ours.error());
    const monarch::tensor::GroupMeeting& meeting = group->is->meeting();
    const std::string& id = meeting.offer.bytes;
    if (id.size() != monarch::tensor::kNcclIdBytes) {
      return monarch::fail(error, MONARCH_TENSORS_INVALID,
                           monarch::text("group ", group->name, ": its first member has met with no id of NCCL's"));
    }
    if (group->name.size() + std::strlen(kEnd) > monarch::tensor::kPublicationNameBytes) {
      return monarch::fail(error, MONARCH_TENSORS_INVALID,
                           monarch::text("group ", group->name, ": the name of one with NCCL has at most ",
                                         monarch::tensor::kPublicationNameBytes - std::strlen(kEnd), " bytes"));
    }
    auto library = find_nccl();
    if (!library.ok()) return monarch::fail(error, library.error());
    auto cuda = monarch::tensor::load_libcuda();
    if (!cuda.ok()) return monarch::fail(error, cuda.error());
    const std::uint32_t size = group->is->members().size();
    const auto say = [](const std::string& line) { monarch::say_line(monarch::text("monarch: ", line)); };
    auto opened = monarch::tensor::NcclGroup::open(
        {.nccl = *library, .cuda = *cuda, .tie = std::make_shared<MetTie>(*group), .say = say},
        {.group = group->name, .place = {id, group->is->rank(), size}, .device = device}, timeout_of(timeout_ms));
    if (!opened.ok()) {
      const int code = monarch::fail(error, opened.error());
      const bool gone = code == MONARCH_TENSORS_PEER_GONE && error != nullptr && error->struct_size >= sizeof *error;
      if (gone) error->generation = meeting.epoch.generation;
      return code;
    }
    *nccl = new monarch_tensors_nccl{group->session, meeting.epoch.generation, std::move(*opened)};
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_nccl_run(monarch_tensors_nccl* nccl, const monarch_tensors_nccl_work_v1* work,
                             monarch_tensors_error_v1* error) {
  return in_process(nccl, error, [&]() -> monarch::Status {
    const auto read = read_work(*work);
    if (!read.ok()) return read.error();
    return nccl->is->run(*read, timeout_of(work->timeout_ms));
  });
}

int monarch_tensors_nccl_wait(monarch_tensors_nccl* nccl, uint64_t stream, int64_t timeout_ms,
                              monarch_tensors_error_v1* error) {
  return in_process(nccl, error, [&] { return nccl->is->wait(stream, timeout_of(timeout_ms)); });
}

int monarch_tensors_nccl_close(monarch_tensors_nccl* nccl, int64_t timeout_ms, monarch_tensors_error_v1* error) {
  return in_process(nccl, error, [&] { return nccl->is->close(timeout_of(timeout_ms)); });
}

void monarch_tensors_nccl_free(monarch_tensors_nccl* nccl) {
  if (nccl == nullptr) return;
  // A child has none of the threads that would be waited for.
  if (!nccl->session->check_process().ok()) (void)nccl->is.release();
  delete nccl;
}

}  // extern "C"
