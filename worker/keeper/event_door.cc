#include "worker/keeper/event_door.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "worker/core/commit_question.h"
#include "worker/core/notify.h"

namespace monarch {

namespace {

constexpr int kQuestionsPerTurn = 8;

}  // namespace

Result<std::unique_ptr<EventDoor>> EventDoor::open(EventLoop& loop, EventDoorOptions options) {
  std::unique_ptr<EventDoor> door(new EventDoor(loop, std::move(options)));
  EventDoor* const self = door.get();
  MONARCH_ASSIGN(door->questions_, SeqpacketListener::create(loop, self->options_.question_path,
                                                             [self](UniqueFd socket, const PeerCredentials&) {
                                                               self->accept(std::move(socket), false);
                                                             }));
  MONARCH_ASSIGN(door->events_, SeqpacketListener::create(loop, self->options_.events_path,
                                                          [self](UniqueFd socket, const PeerCredentials&) {
                                                            self->accept(std::move(socket), true);
                                                          }));
  return door;
}

EventDoor::~EventDoor() {
  for (const auto& [id, connection] : connections_) loop_.forget(connection.watch);
}

EventDoorDrops EventDoor::drops() const {
  EventDoorDrops drops = drops_;
  drops.foreign = questions_->refused_peers() + events_->refused_peers();
  return drops;
}

void EventDoor::accept(UniqueFd socket, bool hears_events) {
  if (connections_.size() >= kConnections) {
    ++drops_.too_many;
    return;
  }
  const std::uint64_t id = next_id_++;
  const auto watch = loop_.watch(socket.get(), Interest::kRead, [this, id](Readiness) { on_readable(id); });
  if (!watch.ok()) return;  // the kernel has no memory for it: it sees a closed connection and may come again
  connections_[id] = {.socket = std::move(socket), .watch = watch.value(), .hears_events = false};
  if (hears_events) begin_events(id);
}

// WARNING: without room for ancillary data the kernel closes descriptors that come along (recvmsg(2)).
void EventDoor::on_readable(std::uint64_t id) {
  std::array<char, kNotifyBytes + 1> bytes;  // not cleared: recv says how much of it is written
  for (int i = 0; i < kQuestionsPerTurn; ++i) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const ssize_t got = ::recv(found->second.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return drop(id);
    answer(id, {bytes.data(), static_cast<std::size_t>(got)});
  }
}

void EventDoor::answer(std::uint64_t id, std::string_view message) {
  switch (parse_question(message)) {
    case RankQuestion::kNone: return;  // it may speak here as over NOTIFY_SOCKET, and nobody listens
    case RankQuestion::kWho: (void)say(id, options_.who); return;
    case RankQuestion::kEvents:
      if (say(id, events_answer())) begin_events(id);
      return;
    case RankQuestion::kCommitted: (void)say(id, options_.committed); return;
    case RankQuestion::kCommit: return commit(id, message);
    case RankQuestion::kGate: return gate(id);
    case RankQuestion::kUnknown: (void)say(id, unknown_answer()); return;
  }
}

void EventDoor::commit(std::uint64_t id, std::string_view message) {
  auto parsed = parse_commit(message);
  if (!parsed) return (void)say(id, commit_error(parsed.error().message));
  CommitRequest asked = std::move(parsed).value();
  // Who gave up waiting may ask again.
  asked.number = asked_ ? asked_->number : ++commits_;
  if (asked_ && *asked_ != asked) {
    return (void)say(id, commit_error(text("step ", asked_->step, " is being committed: one at a time")));
  }
  if (std::find(waiting_.begin(), waiting_.end(), id) == waiting_.end()) waiting_.push_back(id);
  if (asked_) return;
  asked_ = std::move(asked);
  options_.on_commit(*asked_);
}

void EventDoor::answer_commit(const CommitAnswer& answer) {
  if (!asked_ || asked_->number != answer.number) return;
  const std::string line = commit_answer(*std::exchange(asked_, std::nullopt), answer);
  for (const std::uint64_t id : std::exchange(waiting_, {})) {
    if (connections_.contains(id)) (void)say(id, line);
  }
}

void EventDoor::gate(std::uint64_t id) {
  if (!options_.gate.empty()) return (void)say(id, options_.gate);
  if (std::find(at_gate_.begin(), at_gate_.end(), id) == at_gate_.end()) at_gate_.push_back(id);
  options_.on_gate();
}

void EventDoor::open_gate(std::string who, std::string committed, std::string gate) {
  options_.who = std::move(who);
  options_.committed = std::move(committed);
  options_.gate = std::move(gate);
  for (const std::uint64_t id : std::exchange(at_gate_, {})) {
    if (connections_.contains(id)) (void)say(id, options_.gate);
  }
}

void EventDoor::begin_events(std::uint64_t id) {
  Connection& connection = connections_.at(id);
  if (std::exchange(connection.hears_events, true)) return;
  for (const std::string& line : kept_) {
    if (!say(id, line)) return;
  }
}

void EventDoor::tell(const std::string& json) {
  if (json.size() > kEventBytes) {
    return log_warn("an event of ", json.size(), " bytes is not told to a rank: ", kEventBytes, " are the most");
  }
  kept_bytes_ += json.size();
  kept_.push_back(json);
  while (kept_.size() > kKeptEvents || kept_bytes_ > kKeptBytes) {
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
  }
  std::vector<std::uint64_t> readers;
  for (const auto& [id, connection] : connections_) {
    if (connection.hears_events) readers.push_back(id);
  }
  for (const std::uint64_t id : readers) (void)say(id, json);
}

bool EventDoor::say(std::uint64_t id, const std::string& line) {
  const Connection& connection = connections_.at(id);
  const ssize_t sent = ::send(connection.socket.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(line.size())) return true;
  if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) ++drops_.slow;
  drop(id);  // also where it has closed its end
  return false;
}

void EventDoor::drop(std::uint64_t id) {
  const auto found = connections_.find(id);
  loop_.forget(found->second.watch);
  connections_.erase(found);
  std::erase(waiting_, id);
  std::erase(at_gate_, id);
}

}  // namespace monarch
