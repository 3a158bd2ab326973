#include "supervisor/doctor/host_errand.h"

#include <poll.h>

#include <utility>

#include "supervisor/launch/ssh/ssh_way_back.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch::doctor {

namespace {

constexpr Duration kSilence = Duration::seconds(30);  // of a host in the middle of an answer

// Whether its sshd leads ports back. What would go through them is the session's own affair: it ends with this.
void try_tunnel(SshSession& session, const Errand& errand, int cancel, Report& report) {
  Bootstrap unused;
  const auto way = point_back(session, errand.route, {.tunnel = {1, 1}}, unused, {kSilence, cancel});
  const auto* failure = std::get_if<LaunchFailure>(&way);
  report.tunnel = failure == nullptr;
  if (failure != nullptr) report.no_call_back_because = failure->message;
}

void add_call_backs(SshSession& session, Errand& errand, Report& report) {
  report.no_call_back_because = errand.no_doors_because;
  std::string address = errand.address;
  if (address.empty()) {
    auto reached = session.local_address();
    if (!reached.ok()) {
      report.no_call_back_because =
          text(reached.error().message,
               ": say it in control.address, or take the way of the session by `control: {via: ssh}`");
      return;
    }
    address = std::move(*reached);
  }
  for (const std::uint16_t port : errand.ports)
    errand.look.calls.push_back({.name = "this machine", .address = address, .port = port});
}

// The next order; leave where nobody wants to know more.
Order next_order(Orders& orders, int cancel, std::vector<Order>& waiting) {
  while (waiting.empty()) {
    pollfd polled[2] = {{orders.descriptor(), POLLIN, 0}, {cancel, POLLIN, 0}};
    (void)::poll(polled, 2, -1);
    if (polled[1].revents != 0) return std::nullopt;
    for (Order& order : orders.take_all()) waiting.push_back(std::move(order));
  }
  Order order = std::move(waiting.front());
  waiting.erase(waiting.begin());
  return order;
}

}  // namespace

void run_errand(Errand errand, SshSession& session, int cancel) {
  CheckTalk talk(session, errand.order, errand.image.get(), {.cancel = cancel, .silence = kSilence});
  Report report{.host = errand.host};
  if (errand.tunnel) {
    try_tunnel(session, errand, cancel, report);
  } else if (errand.calls_here) {
    add_call_backs(session, errand, report);
  }
  // Nothing is looked at yet: it takes as long as a copy does, and the clocks are compared by the answer after it.
  const CheckRequest hello{.words = errand.look.words, .life = errand.look.life};
  report.outcome = talk.ask(hello);
  report.reached_after = boot_now() - errand.began;
  report.copied = talk.copied();
  if (std::holds_alternative<TimedAnswer>(report.outcome)) report.outcome = talk.ask(errand.look);
  std::vector<Order> waiting;
  for (;;) {
    const bool failed = std::holds_alternative<LaunchFailure>(report.outcome);
    MONARCH_ASSERT(errand.reports->put(std::exchange(report, Report{.host = errand.host})));
    if (failed) return;
    const Order order = next_order(*errand.orders, cancel, waiting);
    if (!order) return talk.leave();
    report.outcome = talk.ask(*order);
  }
}

}  // namespace monarch::doctor
