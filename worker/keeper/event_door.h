#pragma once

// EventDoor: the two SEQPACKET sockets of one rank. At the first (MONARCH_SOCKET) it asks and is answered, at once but
// for a checkpoint that it commits, of which there is one at a time; who connects to the second (MONARCH_EVENTS) is
// told events, first those of late that it missed. What a reader leaves unread waits in the kernel's queue; when that
// is full the reader is dropped, for nothing here waits.
//
// Thread: the loop's. Lifetime: shorter than the loop's.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/rank.h"
#include "transport/wire/seqpacket_listener.h"

namespace monarch {

struct EventDoorOptions {
  std::string question_path;
  std::string events_path;
  std::string who;        // the answer to ASK=who
  std::string committed;  // the answer to ASK=committed
  std::string gate;       // the answer to ASK=gate; empty: whoever asks waits for open_gate()
  // Somebody waits for it. It must not close the door.
  std::function<void()> on_gate = {};
  // A checkpoint, to be answered by answer_commit(). It must not close the door.
  std::function<void(const CommitRequest&)> on_commit;
};

struct EventDoorDrops {
  std::uint64_t too_many = 0;  // connections beyond kConnections
  std::uint64_t slow = 0;      // readers that did not read
  std::uint64_t foreign = 0;   // connections of another user
};

class EventDoor {
 public:
  static constexpr std::size_t kConnections = 8;
  static constexpr std::size_t kEventBytes = 2'048;  // a longer one is not told
  static constexpr std::size_t kKeptEvents = 16;     // for who connects later; the oldest go first
  static constexpr std::size_t kKeptBytes = 4'096;

  static Result<std::unique_ptr<EventDoor>> open(EventLoop& loop, EventDoorOptions options);
  EventDoor(const EventDoor&) = delete;
  EventDoor& operator=(const EventDoor&) = delete;
  ~EventDoor();

  void tell(const std::string& json);
  // Of the commit with this number; of another one it is nothing.
  void answer_commit(const CommitAnswer& answer);
  // Of a standby that has its place now: `who`, `committed` and `gate` are of that, and who waits is told.
  void open_gate(std::string who, std::string committed, std::string gate);
  EventDoorDrops drops() const;

 private:
  struct Connection {
    UniqueFd socket;
    WatchId watch = 0;
    bool hears_events = false;
  };

  EventDoor(EventLoop& loop, EventDoorOptions options) : loop_(loop), options_(std::move(options)) {}
  void accept(UniqueFd socket, bool hears_events);
  void on_readable(std::uint64_t id);
  void answer(std::uint64_t id, std::string_view message);
  void commit(std::uint64_t id, std::string_view message);
  void gate(std::uint64_t id);
  void begin_events(std::uint64_t id);
  // False where the reader was dropped.
  bool say(std::uint64_t id, const std::string& line);
  void drop(std::uint64_t id);

  EventLoop& loop_;
  EventDoorOptions options_;
  std::unique_ptr<SeqpacketListener> questions_;
  std::unique_ptr<SeqpacketListener> events_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t next_id_ = 1;
  std::uint64_t commits_ = 0;
  std::optional<CommitRequest> asked_;  // the one that is under way
  std::vector<std::uint64_t> waiting_;  // connections that asked for it
  std::vector<std::uint64_t> at_gate_;  // connections that wait for their place
  std::deque<std::string> kept_;
  std::size_t kept_bytes_ = 0;
  EventDoorDrops drops_;
};

}  // namespace monarch
