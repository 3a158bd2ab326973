#pragma once

// Intake: what the post gives this process to run, to the actors that it is for.
//
// Thread: that of its door. Lifetime: within that of the actors.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/messages/post.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/deliveries.h"
#include "worker/rank/door_thread.h"

namespace monarch {

// Of every actor, answered here: it is made.
inline constexpr std::string_view kReadyEndpoint = "monarch.ready";

class Intake {
 public:
  using Find = std::function<ActorThread*(const std::string& name)>;  // nullptr: there is none

  Intake(Deliveries& deliveries, Find find) : deliveries_(deliveries), find_(std::move(find)) {}

  // `cut_off`: see DoorThread.
  DoorThread::Handlers handlers(std::function<void(const std::string& why)> cut_off);

 private:
  void heard(const DoorThread::Connection& by, DoorClient::Heard& heard);
  void deliver(const DoorThread::Connection& by, PostDeliver given, std::vector<UniqueFd>& beside);

  Deliveries& deliveries_;
  Find find_;
};

// As the post is told of it.
RankActor told_actor(const std::string& name, const monarch_class_v1& of);

}  // namespace monarch
