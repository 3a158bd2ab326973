#pragma once

// Deliveries: the calls that this rank has been given and has not answered. Each is answered once, by its actor or by
// whoever the actor left that to, and belongs to the connection by which it came: with that its answer is nobody's.
//
// Thread: any. Lifetime: that of the process: an endpoint's Reply may be answered at any time.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <monarch/plugin_v1.h>

#include "transport/messages/post.h"
#include "worker/rank/bodies/body_pieces.h"
#include "worker/rank/bodies/door_body.h"
#include "worker/rank/door_thread.h"

namespace monarch {
class ActorThread;
class Deliveries;
}  // namespace monarch

// What plugins know by this name.
struct monarch_delivery_v1 {
  monarch::Deliveries* of = nullptr;
  std::uint64_t id = 0;
  monarch::DoorThread::Connection by;
  monarch::ActorThread* actor = nullptr;
  std::atomic<bool> unwanted{false};                // nobody waits for it any more
  std::shared_ptr<monarch::BodyReaders> arguments;  // nullptr: they came in their message
  std::weak_ptr<monarch::BodyReading> reading;      // of who runs it
};

namespace monarch {

class Deliveries {
 public:
  Deliveries() = default;
  Deliveries(const Deliveries&) = delete;
  Deliveries& operator=(const Deliveries&) = delete;

  // It lives until it is answered.
  monarch_delivery_v1* add(std::uint64_t id, const DoorThread::Connection& by, ActorThread* actor,
                           const DoorBody& arguments = {});
  // Sends the outcome, with the bytes of its value. The delivery is no more. kHasRead: who runs it reads its arguments
  // no more; where others do, the post hears so, and again when they do not.
  enum class Arguments : std::uint8_t { kMayBeRead, kHasRead };
  void answer(monarch_delivery_v1* delivery, CallOutcome outcome, const BodyPieces& value,
              Arguments arguments = Arguments::kMayBeRead);
  // What has not begun is not run.
  void take_back(std::uint64_t id, const DoorThread::Connection& by);
  // A connection has ended.
  void ended(const DoorThread::Connection& connection);

 private:
  using Key = std::pair<const DoorClient*, std::uint64_t>;

  std::unique_ptr<monarch_delivery_v1> remove(monarch_delivery_v1* delivery);
  static void send(const monarch_delivery_v1& ended, PostReply reply, const BodyPieces& value);

  std::mutex mutex_;
  std::map<Key, std::unique_ptr<monarch_delivery_v1>> open_;
};

}  // namespace monarch
