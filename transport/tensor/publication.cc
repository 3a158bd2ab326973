#include "transport/tensor/publication.h"

#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

std::unique_ptr<ToRegistrar> make_registrar(EventLoop& loop, OwnerServer& server, const PublicationOptions& options,
                                            ToRegistrar::Handlers handlers) {
  if (options.registrar != server.rank().rank) {
    return std::make_unique<RegistrarLink>(loop, server, options.name, options.registrar, options.owner.slots,
                                           std::move(handlers));
  }
  const RegistrarOptions core{.generation = server.rank().generation,
                              .publishers = options.publishers,
                              .slots = options.owner.slots,
                              .linger = options.linger};
  return std::make_unique<Registrar>(loop, server, core, std::move(handlers));
}

}  // namespace

Publication::Publication(EventLoop& loop, OwnerServer& server, const PublicationOptions& options, Tell tell)
    : loop_(loop),
      server_(server),
      name_(options.name),
      tell_(std::move(tell)),
      core_(options.owner),
      slots_(options.owner.slots),
      mirrors_(server.verbs()),
      to_registrar_(make_registrar(loop, server, options,
                                   {.unfit = [this](const std::string& why) { tell_(publisher_word::Unfit{why}); },
                                    .all_hold = [this](std::uint64_t number) { feed(owner_event::AllHold{number}); },
                                    .release = [this] { tell_(publisher_word::Released{}); }})) {
  server_.add(name_, {.heard = [this](LinkNumber link, const HelloAsk& peer,
                                      const StreamLink::Received& word) { heard(link, peer, word); },
                      .left =
                          [this](LinkNumber link, const HelloAsk& peer) {
                            to_registrar_->left(link, peer);
                            mirrors_.left(link);
                            feed(owner_event::LinkLeft{link});
                          }});
}

Publication::~Publication() {
  server_.remove(name_, ended_);
  loop_.cancel(timer_);
}

void Publication::begin(std::uint64_t number) { feed(owner_event::Begin{number}); }

void Publication::commit(std::shared_ptr<Slot> memory, const std::optional<Index>& index) {
  Memory& slot = slots_[writing_];
  if (slot.slot != memory) {
    slot.known.reset();
    slot.slot = std::move(memory);
    ++slot.serial;
  }
  if (index) to_registrar_->publishes(*index);
  feed(owner_event::Commit{});
}

void Publication::abandon(bool keeps) {
  if (keeps) renew(writing_);
  feed(owner_event::Abandon{});
}

// Whoever READs it in this moment hears that it is known no more.
void Publication::renew(std::size_t slot) {
  slots_[slot].known.reset();
  slots_[slot].slot.reset();
}

void Publication::perform(const owner_action::EndLink& action) { server_.end(action.link, action.why); }

void Publication::perform(const owner_action::Write& action) {
  writing_ = action.slot;
  tell_(publisher_word::Write{action.slot, slots_[action.slot].slot});
}

void Publication::feed(const OwnerEvent& event) {
  for (const OwnerAction& action : core_.step(event, loop_.now())) {
    std::visit([this](const auto& one) { perform(one); }, action);
  }
  loop_.cancel(timer_);
  timer_ = 0;
  if (core_.next_due() != Instant::never()) {
    timer_ = loop_.at(core_.next_due(), [this] { feed(owner_event::Tick{}); });
  }
}

// ---- Readers.

void Publication::heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word) {
  const auto of_registrar = to_registrar_->heard(link, peer, word);
  if (!of_registrar.ok()) return server_.end(link, text(peer.reader.name(), ": ", of_registrar.error().message));
  const bool of_reader = peer.purpose == LinkPurpose::kReads && heard_reader(link, word);
  if (!*of_registrar && !of_reader) server_.end(link, text(peer.reader.name(), " says what no reader may say"));
}

Publication::Memory* Publication::memory_of(const VersionId& version, std::uint16_t& slot) {
  if (version.generation != server_.rank().generation) return nullptr;
  const auto found = core_.slot_of(version.number);
  if (!found) return nullptr;
  slot = static_cast<std::uint16_t>(*found);
  MONARCH_ASSERT(slots_[*found].slot != nullptr);
  return &slots_[*found];
}

bool Publication::heard_reader(LinkNumber link, const StreamLink::Received& word) {
  const LinkFrame& frame = word.frame;
  const std::uint64_t number = frame.version.number;
  const bool ours = frame.version.generation == server_.rank().generation;
  switch (frame.kind) {
    case FrameKind::kReading:
      if (ours) feed(owner_event::Reading{link, number});
      return true;
    case FrameKind::kRead:
      if (ours) feed(owner_event::Read{link, number});
      return true;
    case FrameKind::kMapped:
      if (ours) feed(owner_event::Mapped{link, number});
      return true;
    case FrameKind::kUnmapped:
      if (ours) feed(owner_event::Unmapped{link, number});
      return true;
    case FrameKind::kSlot: (frame.flags & kByKey) == 0 ? give_slot(link, frame) : give_key(link, frame); return true;
    case FrameKind::kVerbs: meet(link, word); return true;
    case FrameKind::kRows: give_rows(link, frame); return true;
    case FrameKind::kWord: give_word(link, frame); return true;
    default: return false;  // the others are said to readers, or to a registrar
  }
}

void Publication::give_slot(LinkNumber link, LinkFrame frame) {
  frame.length = 0;
  const Memory* const memory = memory_of(frame.version, frame.slot);
  if (memory == nullptr) return server_.send(link, frame);
  frame.length = memory->slot->bytes();
  frame.offset = memory->serial;
  if (!memory->slot->may_be_pinned()) frame.flags &= static_cast<std::uint16_t>(~kPinned);
  const std::shared_ptr<const Slot> slot = memory->slot;
  feed(owner_event::Given{link, frame.version.number});
  server_.send_slot(link, frame, slot);
}

void Publication::meet(LinkNumber link, const StreamLink::Received& word) {
  VerbsWord theirs;
  codec::DecodeError error;
  if (!codec::decode(word.behind, theirs, error)) return server_.end(link, "what it says of its queue is none");
  server_.send(link, {.kind = FrameKind::kVerbs}, codec::encode(mirrors_.meet(link, theirs)));
}

// What the device may not know is not READ: the reader hears why, and takes rows from the link.
void Publication::give_key(LinkNumber link, LinkFrame frame) {
  frame.length = 0;
  Memory* const memory = memory_of(frame.version, frame.slot);
  if (memory != nullptr) {
    VerbsDevice* const device = mirrors_.end().device.get();
    if (device == nullptr) return server_.end(link, "it has no queue, and asks for a key");
    if (memory->known == nullptr) {
      auto known = device->know(memory->slot->start(), memory->slot->bytes(), VerbsAccess::kReadByOthers);
      if (!known.ok()) {
        const VerbsWord why{.why_not = known.error().message, .address = {}};
        return server_.send(link, {.kind = FrameKind::kVerbs}, codec::encode(why));
      }
      memory->known = std::move(*known);
    }
    frame.length = memory->slot->bytes();
    frame.offset = memory->serial;
    frame.rows = memory->known->remote_key();
  }
  server_.send(link, frame);
}

// Of a version that is not here there are no rows: its word follows where they would be, and is no version's.
void Publication::give_rows(LinkNumber link, const LinkFrame& frame) {
  std::uint16_t slot = 0;
  const Memory* const memory = memory_of(frame.version, slot);
  if (memory == nullptr) return give_word(link, frame);
  const Status fits = check_rows(frame, memory->slot->bytes());
  if (!fits.ok()) return server_.end(link, fits.error().message);
  server_.send_rows(link, frame, memory->slot);
}

void Publication::give_word(LinkNumber link, LinkFrame frame) {
  frame.kind = FrameKind::kWord;
  frame.length = 0;
  const Memory* const memory = memory_of(frame.version, frame.slot);
  if (memory != nullptr) return server_.send_word(link, frame, memory->slot);
  frame.offset = 0;
  server_.send(link, frame);
}

}  // namespace monarch::tensor
