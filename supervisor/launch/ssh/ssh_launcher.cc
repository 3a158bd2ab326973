#include "supervisor/launch/ssh/ssh_launcher.h"

#include <algorithm>
#include <utility>

#include "supervisor/launch/ssh/ssh_target.h"
#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

// Between two attempts to end a worker whose host does not answer.
constexpr Duration kFirstRetry = Duration::milliseconds(500);
constexpr Duration kLongestRetry = Duration::seconds(10);

// A command that tries whether the host reaches the endpoint.
std::string call_back_test(const SshRoute& route, const std::string& endpoint) {
  const std::size_t address = endpoint.find("//") + 2;
  const std::size_t colon = endpoint.rfind(':');
  std::string host = endpoint.substr(address, colon - address);
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  return reproducer(
      route, text("timeout 5 bash -c \"</dev/tcp/", host, "/", endpoint.substr(colon + 1), "\" && echo reached"));
}

}  // namespace

std::string endpoint_at(const std::string& endpoint, const std::string& address) {
  const bool numeric_6 = address.find(':') != std::string::npos;
  const std::string host = numeric_6 ? text("[", address, "]") : address;
  return text(endpoint.substr(0, endpoint.find("//") + 2), host, endpoint.substr(endpoint.rfind(':')));
}

Result<std::unique_ptr<SshLauncher>> SshLauncher::create(EventLoop& loop, SshLauncherOptions options,
                                                         LauncherHandlers handlers) {
  MONARCH_ASSERT(options.image != nullptr || !options.installed.empty());
  std::unique_ptr<SshLauncher> launcher(new SshLauncher(loop, std::move(options), std::move(handlers)));
  MONARCH_ASSIGN(launcher->pool_, SshPool::create(loop, launcher->options_.pool));
  // Nobody told of the workers of an earlier supervisor: they say themselves that they live, over their links.
  if (launcher->handlers_.on_inventory) loop.defer(launcher->handlers_.on_inventory);
  return launcher;
}

SshLauncher::~SshLauncher() {
  for (Host& host : hosts_) loop_.cancel(std::exchange(host.retry, 0));
}

RemoteOrder SshLauncher::order_of(HostId host, RemotePurpose purpose) const {
  RemoteOrder order{.purpose = purpose,
                    .mark = {.job_uuid = options_.job.to_text(),
                             .host_name = options_.hosts[host.value()].name,
                             .job_id = options_.job_id},
                    .installed = options_.installed};
  if (options_.image) {
    order.file = options_.image->file;
    order.machine = options_.image->machine;
  }
  return order;
}

void SshLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = hosts_.at(host.value());
  drop(state);
  state.phase = Phase::kLaunching;
  state.began = loop_.now();
  FrameHeader header;
  header.job = options_.job;
  header.term = options_.term;
  // Values of its own for the thread: nothing of this object is touched there.
  auto talk = [this, host, header, there = Bootstrap(bootstrap), order = order_of(host, RemotePurpose::kStart),
               address = options_.control_address, image = options_.image,
               silence = options_.silence](SshSession& session, int cancel) mutable -> std::function<void()> {
    if (address.empty()) {
      auto reached = session.local_address();
      if (!reached.ok()) {
        LaunchFailure failure{.phase = "authenticate",
                              .message = text(reached.error().message, ": say it in control.address")};
        return [this, host, failure] { fail(host, failure, Phase::kUntouched); };
      }
      address = *reached;
    }
    there.control_endpoint = endpoint_at(there.control_endpoint, address);
    there.bulk_endpoint = endpoint_at(there.bulk_endpoint, address);
    order.bootstrap = encode_frame({header, encode_payload(there)});
    auto result = remote_talk(session, std::move(order), image.get(), {.cancel = cancel, .silence = silence});
    return [this, host, result = std::move(result), endpoint = there.control_endpoint] {
      on_launch_result(host, result, endpoint);
    };
  };
  state.ticket = pool_->submit(
      {.route = options_.hosts[host.value()].route,
       .talk = std::move(talk),
       .on_failed = [this, host](LaunchFailure failure) { fail(host, std::move(failure), Phase::kUntouched); }});
}

void SshLauncher::on_launch_result(HostId host, RemoteResult result, std::string control_endpoint) {
  const SshRoute& route = options_.hosts[host.value()].route;
  if (auto* failure = std::get_if<LaunchFailure>(&result.answer)) {
    failure->again = reproducer(route, "true");
    failure->elapsed = loop_.now() - hosts_[host.value()].began;
    return fail(host, std::move(*failure), result.handed_over ? Phase::kUnknown : Phase::kUntouched);
  }
  auto* reply = std::get_if<BootstrapReply>(&result.answer);
  MONARCH_ASSERT(reply != nullptr);
  hosts_[host.value()].phase = Phase::kLaunched;
  hosts_[host.value()].ticket = 0;
  std::string again = call_back_test(route, control_endpoint);
  handlers_.on_launched(host, LaunchedWorker{.reply = std::move(*reply),
                                             .control_endpoint = std::move(control_endpoint),
                                             .again = std::move(again)});
}

void SshLauncher::fail(HostId host, LaunchFailure failure, Phase next) {
  Host& state = hosts_[host.value()];
  if (state.phase != Phase::kLaunching) return;
  state.ticket = 0;
  state.phase = next;
  handlers_.on_failed(host, std::move(failure));
}

void SshLauncher::destroy(HostId host) {
  Host& state = hosts_.at(host.value());
  switch (state.phase) {
    case Phase::kEnding: return;  // it is at it
    case Phase::kUntouched:
    case Phase::kEnded:
      // Not within the core's own turn.
      loop_.defer([this, host] { tell_ended(host, "was not running", true); });
      return;
    case Phase::kUnknown:
    case Phase::kLaunching:
    case Phase::kLaunched: break;
  }
  loop_.cancel(std::exchange(state.retry, 0));
  state.phase = Phase::kEnding;
  state.tries = 0;
  const SshPool::Ticket launching = std::exchange(state.ticket, 0);
  if (launching == 0) return submit_end(host);
  // What the launch still says to the host must not come after the order to end.
  pool_->cancel(launching, [this, host] {
    if (hosts_[host.value()].phase == Phase::kEnding) submit_end(host);
  });
}

void SshLauncher::submit_end(HostId host) {
  auto talk = [this, host, order = order_of(host, RemotePurpose::kEnd), image = options_.image,
               silence = options_.silence](SshSession& session, int cancel) -> std::function<void()> {
    auto result = remote_talk(session, order, image.get(), {.cancel = cancel, .silence = silence});
    return [this, host, answer = std::move(result.answer)] { on_end_answer(host, answer); };
  };
  Host& state = hosts_[host.value()];
  ++state.tries;
  state.ticket = pool_->submit({.route = options_.hosts[host.value()].route,
                                .talk = std::move(talk),
                                .on_failed = [this, host](LaunchFailure failure) { try_end_again(host, failure); }});
}

void SshLauncher::on_end_answer(HostId host, const RemoteAnswer& answer) {
  if (const auto* failure = std::get_if<LaunchFailure>(&answer)) return try_end_again(host, *failure);
  const auto* ended = std::get_if<RemoteEnded>(&answer);
  MONARCH_ASSERT(ended != nullptr);
  if (ended->processes == 0) return tell_ended(host, "nothing of it was running any more", true);
  tell_ended(host, text(ended->processes, ended->processes == 1 ? " process" : " processes", " ended by order"), false);
}

// Until the host has answered nothing is proven. What follows from the time that takes is the core's to decide.
void SshLauncher::try_end_again(HostId host, const LaunchFailure& failure) {
  Host& state = hosts_[host.value()];
  if (state.phase != Phase::kEnding) return;
  state.ticket = 0;
  const std::string& name = options_.hosts[host.value()].name;
  if (state.tries == 1) log_warn(name, ": ending its worker: ", printable(failure.message), "; trying again");
  const std::uint32_t doublings = std::min<std::uint32_t>(state.tries - 1, 8);
  const Duration wait = std::min(kFirstRetry * (std::int64_t{1} << doublings), kLongestRetry);
  state.retry = loop_.at(loop_.now() + wait, [this, host] {
    hosts_[host.value()].retry = 0;
    submit_end(host);
  });
}

void SshLauncher::on_goodbye(HostId host, bool orderly) {
  const Phase phase = hosts_.at(host.value()).phase;
  if (phase == Phase::kEnded || phase == Phase::kUntouched) return;
  drop(hosts_[host.value()]);
  tell_ended(host, orderly ? "it left" : "its keeper was killed, and what that kept", orderly);
}

void SshLauncher::tell_ended(HostId host, std::string how, bool orderly) {
  hosts_[host.value()].phase = Phase::kEnded;
  hosts_[host.value()].ticket = 0;
  handlers_.on_ended(host, std::move(how), orderly);
}

void SshLauncher::drop(Host& host) {
  if (host.ticket != 0) pool_->cancel(std::exchange(host.ticket, 0));
  loop_.cancel(std::exchange(host.retry, 0));
}

}  // namespace monarch
