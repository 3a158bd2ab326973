#pragma once

// run_errand(): what one session's thread does for a doctor: asks the host as it is ordered, reports each answer, and
// leaves when it is told to, or when nobody wants to know any more.
//
// Thread: the session's; orders and reports pass through inboxes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/doctor/check_talk.h"
#include "supervisor/launch/talk/worker_image.h"
#include "transport/base/time.h"
#include "transport/loop/inbox.h"
#include "transport/messages/check.h"
#include "transport/messages/launch.h"

namespace monarch::doctor {

using Order = std::optional<CheckRequest>;  // nothing: leave
using Orders = Inbox<Order>;

struct Report {
  std::size_t host = 0;
  std::variant<TimedAnswer, LaunchFailure> outcome = LaunchFailure{};
  Duration reached_after;
  bool copied = false;
  std::string no_call_back_because;
  bool tunnel = false;  // the way back is one, and it could be opened
};

// What a session's thread is given; nothing of it belongs to the loop but the inboxes.
struct Errand {
  std::size_t host = 0;
  Instant began;
  RemoteOrder order;
  std::shared_ptr<const WorkerImage> image;  // owners: the checks and the talks under way, which only read it
  CheckRequest look;
  std::vector<std::uint16_t> ports;  // of this machine's doors
  std::string address;               // of this machine; empty: that by which the host is reached
  bool tunnel = false;               // the way back is through the session
  bool calls_here = true;            // the supervisor would be here
  SshRoute route;
  std::string no_doors_because;
  Inbox<Report>* reports = nullptr;
  Orders* orders = nullptr;
};

// Until it is told to leave, or its session fails, which is the last report then.
void run_errand(Errand errand, SshSession& session, int cancel);

}  // namespace monarch::doctor
