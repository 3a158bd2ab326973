#include "transport/tensor/owner_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/tensor/core/index.h"

namespace monarch::tensor {

namespace {

constexpr int kFramesAtOnce = 64;                  // of one link, before others have their turn
constexpr std::uint64_t kSentAtOnce = 8U << 20U;   // the same, in bytes
constexpr std::size_t kEnded = 1'024;              // names; of more it is not known that they have ended
constexpr std::uint64_t kReaderBytes = 4'096;      // behind what a reader says
constexpr std::uint64_t kMemberBytes = 1U << 20U;  // behind what a member of a group says
constexpr Duration kShortOfDescriptors = Duration::milliseconds(100);

Error unfit(std::string words) { return {ErrorCode::kInvalid, std::move(words)}; }

LinkUse use_of(const HelloAsk& ask, const LinkFrame& hello) {
  if (ask.purpose != LinkPurpose::kReads) return LinkUse::kPublishes;
  if (hello.rows == 0) return LinkUse::kWords;
  return hello.rows == 1 ? LinkUse::kRows : LinkUse::kMoreRows;
}

// Behind a frame of that link, after its hello.
std::uint64_t most_behind(LinkPurpose purpose) {
  if (purpose == LinkPurpose::kReads) return kReaderBytes;
  return purpose == LinkPurpose::kPublishes ? kIndexBytes : kMemberBytes;
}

}  // namespace

OwnerServer::OwnerServer(EventLoop& loop, OwnerPlace place) : loop_(loop), place_(std::move(place)) {
  const std::string secret = random_bytes(kSecretBytes);
  std::memcpy(card_.secret.data(), secret.data(), kSecretBytes);
  card_.machine = read_boot_id();
}

OwnerServer::~OwnerServer() {
  while (!links_.empty()) drop(links_.begin()->first);
  for (const Mouth* const mouth : {&on_machine_, &for_hosts_}) loop_.forget(mouth->watch);
  if (accept_timer_ != 0) loop_.cancel(accept_timer_);
  loop_.cancel(look_timer_);
}

Result<std::unique_ptr<OwnerServer>> OwnerServer::start(EventLoop& loop, OwnerPlace place) {
  std::unique_ptr<OwnerServer> made(new OwnerServer(loop, std::move(place)));
  MONARCH_TRY(made->listen());
  return made;
}

// The user may set it anew at any time.
void OwnerServer::count_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) room_.set_files(files.rlim_cur);
}

Status OwnerServer::listen() {
  count_files();
  MONARCH_ASSIGN(on_machine_.listener, listen_on_machine(place_.sockets));
  card_.path = on_machine_.listener.path;
  if (!place_.address.empty()) {
    MONARCH_ASSIGN(HostListener for_hosts,
                   listen_for_hosts(place_.address, place_.first_port, place_.last_port, "readers of tensors"));
    for_hosts_.listener.socket = std::move(for_hosts.socket);
    for_hosts_.listener.port = for_hosts.port;
    card_.address = place_.address;
    card_.port = for_hosts.port;
    MONARCH_TRY(open(for_hosts_));
  }
  if (on_machine_.listener.file) look_at_file();
  return open(on_machine_);
}

// Its folder may be emptied by others, by a log-out or a cleaner of /tmp.
void OwnerServer::look_at_file() {
  look_timer_ = loop_.at(SocketFile::next_look(loop_.now()), [this] { look_at_file(); });
  if (!on_machine_.listener.file->is_missing()) return;
  loop_.forget(std::exchange(on_machine_.watch, 0));
  (void)listen_again(on_machine_.listener);  // the next look tries again
  (void)open(on_machine_);                   // who cannot be watched is not reached, as if it were still missing
  look_at_mouths();
}

Status OwnerServer::open(Mouth& mouth) {
  const auto on_ready = [this, &mouth](Readiness) { accept(mouth); };
  MONARCH_ASSIGN(mouth.watch, loop_.watch(mouth.listener.socket.get(), Interest::kRead, on_ready));
  return {};
}

// ---- Links.

void OwnerServer::look_at_mouths() {
  for (const Mouth* const mouth : {&on_machine_, &for_hosts_}) {
    const bool opens = accept_timer_ == 0 && mouth->strangers < room_.strangers();
    if (mouth->watch != 0) loop_.change(mouth->watch, opens ? Interest::kRead : Interest::kNone);
  }
}

// It has proven that it has a card, or has gone.
void OwnerServer::is_no_stranger(Link& link) {
  Mouth* const mouth = std::exchange(link.mouth, nullptr);
  if (mouth == nullptr) return;
  --mouth->strangers;
  look_at_mouths();
}

void OwnerServer::accept(Mouth& mouth) {
  auto socket = accept_link(mouth.listener);
  if (!socket.ok()) {
    if (socket.error().errno_value == EAGAIN || accept_timer_ != 0) return;
    // Who waits there would wake the loop at once again, and again.
    accept_timer_ = loop_.at(loop_.now() + kShortOfDescriptors, [this] {
      accept_timer_ = 0;
      look_at_mouths();
    });
    return look_at_mouths();
  }
  auto stream = StreamLink::make(std::move(*socket));
  if (!stream.ok()) return;
  const LinkNumber number = next_++;
  const auto on_ready = [this, number](Readiness readiness) { ready(number, readiness); };
  const auto watch = loop_.watch((*stream)->descriptor(), Interest::kRead, on_ready);
  if (!watch.ok()) return;
  Link& link = links_[number];
  link.stream = std::move(*stream);
  link.watch = *watch;
  link.mouth = &mouth;
  ++mouth.strangers;
  look_at_mouths();
  link.patience = loop_.at(loop_.now() + kHelloPatience, [this, number] {
    links_.at(number).patience = 0;
    end(number, text("no hello within ", to_text(kHelloPatience)));
  });
}

void OwnerServer::drop(LinkNumber number) {
  const auto found = links_.find(number);
  if (found == links_.end()) return;
  Link link = std::move(found->second);
  links_.erase(found);
  loop_.forget(link.watch);
  is_no_stranger(link);
  room_.leave(number);
  if (link.patience != 0) loop_.cancel(link.patience);
  if (link.phase != Phase::kReady) return;
  if (const Handlers* const handlers = handlers_of(*link.ask)) handlers->left(number, *link.ask);
}

const OwnerServer::Handlers* OwnerServer::handlers_of(const HelloAsk& ask) const {
  if (ask.purpose == LinkPurpose::kMeets) return meetings_.heard ? &meetings_ : nullptr;
  const auto publication = publications_.find(ask.publication);
  return publication == publications_.end() ? nullptr : &publication->second;
}

void OwnerServer::end(LinkNumber number, const std::string& why) {
  const auto link = links_.find(number);
  if (link == links_.end()) return;
  // Where its other side does not read it hears of the end alone.
  if (link->second.stream->send({.kind = FrameKind::kUnfit}, why).ok()) (void)link->second.stream->flush(kSentAtOnce);
  drop(number);
}

void OwnerServer::ready(LinkNumber number, Readiness readiness) {
  const auto found = links_.find(number);
  if (found == links_.end()) return;
  if (found->second.phase == Phase::kWaiting && readiness.hangup) return drop(number);
  if (readiness.writable) flush(number);
  if ((readiness.readable || readiness.hangup) && !hear(number)) return;
}

bool OwnerServer::hear(LinkNumber number) {
  for (int count = 0; count < kFramesAtOnce; ++count) {
    const auto found = links_.find(number);
    if (found == links_.end()) return false;
    Link& link = found->second;
    if (link.phase == Phase::kWaiting) return true;
    const bool says_hello = link.phase != Phase::kReady;
    auto received = link.stream->receive(says_hello ? kHelloBytes : most_behind(link.ask->purpose));
    if (!received.ok() && received.error().code == ErrorCode::kInvalid) {
      end(number, received.error().message);
      return false;
    }
    if (!received.ok()) {
      drop(number);
      return false;
    }
    if (!*received) return true;
    if (says_hello) {
      const Status heard = hear_hello(number, link, **received);
      if (heard.ok()) continue;
      refuse(number, link, heard.error());
      return false;
    }
    look_at_use(number, (*received)->frame.kind);
    const std::shared_ptr<const HelloAsk> peer = link.ask;
    handlers_of(*peer)->heard(number, *peer, std::move(**received));
  }
  return true;
}

OwnerSecrets OwnerServer::secrets() const {
  return {std::string(reinterpret_cast<const char*>(card_.secret.data()), card_.secret.size()), place_.key};
}

Status OwnerServer::hear_hello(LinkNumber number, Link& link, const StreamLink::Received& word) {
  if (word.frame.kind != FrameKind::kHello) return unfit("it begins with no hello");
  codec::DecodeError error;
  if (link.phase == Phase::kAsking) {
    if (!codec::decode(word.behind, *link.ask, error)) return unfit("a hello that is none");
    const LinkRank& reader = link.ask->reader;
    const bool of_gang = reader.mesh == place_.rank.mesh && reader.generation == place_.rank.generation;
    if (link.ask->purpose == LinkPurpose::kPublishes && !of_gang) return unfit("it is of another gang");
    if (link.ask->purpose == LinkPurpose::kMeets && reader.mesh.empty()) return unfit("it is no rank of the job");
    MONARCH_ASSIGN(link.answer,
                   answer_hello(*link.ask, place_.rank, secret_of(secrets(), *link.ask), random_bytes(kNonceBytes)));
    link.use = use_of(*link.ask, word.frame);
    MONARCH_TRY(find_place(link.use));
    const LinkFrame hello{.kind = FrameKind::kHello, .rows = room_.row_links()};
    MONARCH_TRY(link.stream->send(hello, codec::encode(link.answer)));
    link.phase = Phase::kProving;
    flush(number);
    return {};
  }
  HelloProof proof;
  const bool is_one = codec::decode(word.behind, proof, error);
  if (!is_one || !is_proven(*link.ask, link.answer, proof, secret_of(secrets(), *link.ask))) {
    return Error{ErrorCode::kGone, "it has no card of this rank"};
  }
  loop_.cancel(std::exchange(link.patience, 0));
  is_no_stranger(link);
  room_.enter(number, link.use, loop_.now());
  settle(number, link);
  return {};
}

Status OwnerServer::find_place(LinkUse use) {
  count_files();
  const LinkRoom::Answer answer = room_.ask(use, loop_.now());
  if (answer.ends) end_for_another(*answer.ends);
  if (!answer.has_place) return Error{ErrorCode::kBusy, room_.full()};
  return {};
}

// Who waits for words of ours comes again then; who has rows finds that his link has ended, once he wants more.
void OwnerServer::end_for_another(LinkNumber number) {
  Link& link = links_.at(number);
  if (link.use == LinkUse::kWords) return refuse(number, link, {ErrorCode::kBusy, room_.full()});
  drop(number);
}

void OwnerServer::refuse(LinkNumber number, Link& link, const Error& why) {
  LinkFrame frame{.kind = FrameKind::kUnfit};
  if (why.code == ErrorCode::kGone) frame.flags = kOther;
  if (why.code == ErrorCode::kBusy) {
    frame.flags = kAgain;
    frame.offset = static_cast<std::uint64_t>(LinkRoom::kAgain.count_milliseconds());
  }
  if (link.stream->send(frame, why.message).ok()) (void)link.stream->flush(kSentAtOnce);  // it may have gone
  drop(number);
}

// A version is taken from the word that says so until its end is said.
void OwnerServer::look_at_use(LinkNumber number, FrameKind heard) {
  const Instant now = loop_.now();
  switch (heard) {
    case FrameKind::kReading: return room_.reads(number, true, now);
    case FrameKind::kOpen:
    case FrameKind::kRead: return room_.reads(number, false, now);
    case FrameKind::kMapped: return room_.maps(number, true, now);
    case FrameKind::kUnmapped: return room_.maps(number, false, now);
    default: return room_.moves(number, now);
  }
}

// It may be no more after that.
void OwnerServer::settle(LinkNumber number, Link& link) {
  if (link.ask->purpose == LinkPurpose::kReads && ended_.contains(link.ask->publication)) {
    const LinkFrame over{.kind = FrameKind::kOver, .version = {place_.rank.generation, 0}};
    if (link.stream->send(over).ok()) (void)link.stream->flush(kSentAtOnce);
    return drop(number);
  }
  if (link.ask->purpose == LinkPurpose::kMeets && !meetings_.heard) return end(number, "it holds no groups");
  link.phase = handlers_of(*link.ask) != nullptr ? Phase::kReady : Phase::kWaiting;
  if (link.phase == Phase::kWaiting && link.ask->purpose == LinkPurpose::kReads) {
    std::string names;
    for (const auto& [name, handlers] : publications_) names += name + '\n';
    send(number, {.kind = FrameKind::kUnknown}, std::move(names));
  }
  if (link.phase == Phase::kWaiting) tell_that_others_have(link.ask->publication);
  look_at_interest(link);
}

// Ranks of the gang have published what this first one has not: readers hear for whom they wait.
void OwnerServer::tell_that_others_have(const std::string& publication) {
  const auto waits = [&publication](const Link& link, LinkPurpose purpose) {
    return link.phase == Phase::kWaiting && link.ask->purpose == purpose && link.ask->publication == publication;
  };
  const bool others_have = std::any_of(
      links_.begin(), links_.end(), [&waits](const auto& one) { return waits(one.second, LinkPurpose::kPublishes); });
  if (!others_have) return;
  for (auto& [number, link] : links_) {
    if (!waits(link, LinkPurpose::kReads) || std::exchange(link.told, true)) continue;
    send(number, {.kind = FrameKind::kWaits},
         text("rank ", place_.rank.rank, " of its gang has not published it yet, and others have"));
  }
}

void OwnerServer::add(const std::string& publication, Handlers handlers) {
  ended_.erase(publication);
  publications_.insert_or_assign(publication, std::move(handlers));
  for (auto& [number, link] : links_) {
    if (link.phase == Phase::kWaiting && link.ask->publication == publication) settle(number, link);
  }
}

void OwnerServer::remove(const std::string& publication, bool ended) {
  publications_.erase(publication);
  if (ended && ended_.size() < kEnded) ended_.insert(publication);
  drop_all([&publication](const HelloAsk& ask) {
    return ask.purpose != LinkPurpose::kMeets && ask.publication == publication;
  });
}

void OwnerServer::meet(Handlers handlers) {
  meetings_ = std::move(handlers);
  if (!meetings_.heard) drop_all([](const HelloAsk& ask) { return ask.purpose == LinkPurpose::kMeets; });
}

// Of those that are ready.
void OwnerServer::drop_all(const std::function<bool(const HelloAsk& ask)>& is_one) {
  std::vector<LinkNumber> its;
  for (const auto& [number, link] : links_) {
    if (link.phase == Phase::kReady && is_one(*link.ask)) its.push_back(number);
  }
  for (const LinkNumber number : its) drop(number);
}

// ---- Sending.

void OwnerServer::send(LinkNumber number, const LinkFrame& frame, std::string behind) {
  const auto link = links_.find(number);
  if (link == links_.end()) return;
  if (frame.kind == FrameKind::kOpened) room_.reads(number, true, loop_.now());
  queued(number, link->second.stream->send(frame, std::move(behind)));
}

void OwnerServer::send_slot(LinkNumber number, const LinkFrame& frame, std::shared_ptr<const Slot> slot) {
  const auto link = links_.find(number);
  if (link != links_.end()) queued(number, link->second.stream->send_slot(frame, std::move(slot)));
}

void OwnerServer::send_rows(LinkNumber number, const LinkFrame& asked, std::shared_ptr<const Slot> slot) {
  const auto link = links_.find(number);
  if (link != links_.end()) queued(number, link->second.stream->send_rows(asked, std::move(slot)));
}

void OwnerServer::send_word(LinkNumber number, const LinkFrame& asked, std::shared_ptr<const Slot> slot) {
  const auto link = links_.find(number);
  if (link != links_.end()) queued(number, link->second.stream->send_word(asked, std::move(slot)));
}

// Once a turn: what is said together goes together. And who says it may be in the middle of hearing the link.
void OwnerServer::queued(LinkNumber number, Status status) {
  Link& link = links_.at(number);
  const bool full = !status.ok();
  if (std::exchange(link.flushing, true) && !full) return;
  loop_.defer(scope_.guard([this, number, full] {
    if (full) return drop(number);
    flush(number);
  }));
}

void OwnerServer::flush(LinkNumber number) {
  const auto found = links_.find(number);
  if (found == links_.end()) return;
  Link& link = found->second;
  link.flushing = false;
  if (link.stream->wants_to_write()) room_.moves(number, loop_.now());
  if (!link.stream->flush(kSentAtOnce).ok()) return drop(number);
  look_at_interest(link);
}

void OwnerServer::look_at_interest(Link& link) {
  const bool reads = link.phase != Phase::kWaiting;
  const bool writes = link.stream->wants_to_write();
  const Interest wanted =
      reads ? (writes ? Interest::kReadWrite : Interest::kRead) : (writes ? Interest::kWrite : Interest::kNone);
  if (std::exchange(link.interest, wanted) != wanted) loop_.change(link.watch, wanted);
}

}  // namespace monarch::tensor
