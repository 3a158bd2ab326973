#include "supervisor/launch/away_launcher.h"

#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

constexpr char kPhase[] = "launch";

}  // namespace

AwayLauncher::AwayLauncher(EventLoop& loop, AwayLauncherOptions options, LauncherHandlers handlers)
    : loop_(loop),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      hosts_(options_.hosts),
      patience_(loop) {
  // Nobody tells of the workers of an earlier supervisor: they say themselves that they live, over their links.
  if (options_.awaited == Duration::zero()) {
    presence_ = Presence::kGone;
    why_gone_ = "the machine that launched the hosts was there for the start alone";
    return;
  }
  patience_.start(options_.awaited, [this](const std::string& late) {
    lose(Presence::kGone,
         text("the machine that launches the hosts did not come within ", to_text(options_.awaited), late));
  });
}

Status AwayLauncher::take(UniqueFd socket) {
  if (presence_ == Presence::kThere)
    return Error{ErrorCode::kBusy, "a machine that launches the hosts is there already"};
  if (presence_ != Presence::kAwaited) return Error{ErrorCode::kGone, why_gone_};
  MONARCH_ASSIGN(channel_, SeqpacketChannel::create(
                               loop_, std::move(socket),
                               {.on_frame = [this](Frame frame, std::vector<UniqueFd>) { on_frame(frame); },
                                .on_closed =
                                    [this](Error why) {
                                      if (presence_ != Presence::kThere) return;  // it was told to go
                                      lose(Presence::kGone,
                                           text("the machine that launches the hosts has gone: ", why.message));
                                    }},
                               {.payload_bytes = limits::kControlPayloadBytes}));
  patience_.stop();
  presence_ = Presence::kThere;
  log_info("the machine that launches the hosts is there");
  send(LauncherWelcome{});
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].phase == Phase::kWaiting) order(HostId(static_cast<std::uint32_t>(i)));
  }
  return {};
}

template <class Message>
void AwayLauncher::send(const Message& message) {
  const Status sent = channel_->send(frame_of(message, {.job = options_.job, .term = options_.term}));
  if (sent.ok() || sent.error().code == ErrorCode::kGone) return;  // its end is told by the loop
  log_error("telling the machine that launches the hosts: ", sent.error().message);
  channel_->close();
}

void AwayLauncher::order(HostId host) {
  Host& state = hosts_[host.value()];
  state.phase = Phase::kLaunching;
  send(LaunchHost{.host = host.value(), .bootstrap = std::exchange(state.waiting, Bootstrap{})});
}

void AwayLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = hosts_.at(host.value());
  state.phase = Phase::kWaiting;
  state.waiting = bootstrap;
  if (presence_ == Presence::kThere) return order(host);
  if (presence_ != Presence::kAwaited) fail_soon(host);
}

// Not within the core's own turn.
void AwayLauncher::fail_soon(HostId host) {
  loop_.defer(scope_.guard([this, host] {
    Host& state = hosts_[host.value()];
    if (state.phase != Phase::kWaiting && state.phase != Phase::kLaunching) return;
    // What nobody was told of has reached nobody.
    state.phase = state.phase == Phase::kWaiting ? Phase::kEnded : Phase::kFailed;
    handlers_.on_failed(host, {.kind = LaunchFailureKind::kLauncherGone, .phase = kPhase, .message = why_gone_});
  }));
}

void AwayLauncher::end_soon(HostId host) {
  loop_.defer(scope_.guard([this, host] { handlers_.on_ended(host, "was not running", true); }));
}

void AwayLauncher::out_of_reach(HostId host) {
  if (!options_.on_out_of_reach) return;
  loop_.defer(scope_.guard([this, host] { options_.on_out_of_reach(host); }));
}

void AwayLauncher::destroy(HostId host) {
  Host& state = hosts_.at(host.value());
  switch (state.phase) {
    case Phase::kEnding: return;  // it is told, or nobody can be
    case Phase::kWaiting: state.phase = Phase::kEnded; return end_soon(host);
    case Phase::kEnded: return end_soon(host);
    case Phase::kUnknown:
    case Phase::kLaunching:
    case Phase::kLaunched:
    case Phase::kFailed: break;
  }
  state.phase = Phase::kEnding;
  if (presence_ != Presence::kThere) return out_of_reach(host);
  send(EndHost{.host = host.value()});
}

void AwayLauncher::on_goodbye(HostId host, bool orderly) {
  Host& state = hosts_.at(host.value());
  if (state.phase == Phase::kEnded) return;
  state.phase = Phase::kEnded;
  if (presence_ == Presence::kThere) {
    send(HostSaidGoodbye{.host = host.value(), .orderly = orderly});
  }
  handlers_.on_ended(host, orderly ? "it left" : "its keeper was killed, and its ranks with it", orderly);
}

bool AwayLauncher::has_idle_helper() const {
  if (presence_ != Presence::kThere) return false;
  for (const Host& host : hosts_) {
    if (host.phase == Phase::kLaunching || host.phase == Phase::kEnding) return false;
  }
  return true;
}

void AwayLauncher::release_helper(const std::string& reason) {
  if (presence_ != Presence::kThere) return;
  send(LeaveLauncher{.reason = reason});
  lose(Presence::kReleased, "the machine that launched the hosts was there for the start alone");
  channel_->close();
  log_info("the machine that launches the hosts may go: ", reason);
}

void AwayLauncher::lose(Presence next, const std::string& why) {
  presence_ = next;
  why_gone_ = why;
  if (next == Presence::kGone) log_warn(why);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const HostId host(static_cast<std::uint32_t>(i));
    if (hosts_[i].phase == Phase::kWaiting || hosts_[i].phase == Phase::kLaunching) fail_soon(host);
    if (hosts_[i].phase == Phase::kEnding) out_of_reach(host);
  }
}

void AwayLauncher::malformed(const char* what) {
  log_warn("the machine that launches the hosts: not ", what, " that can be read");
  channel_->close();
}

// Nothing: it names a host that the job does not have.
AwayLauncher::Host* AwayLauncher::known(std::uint32_t host, const char* what) {
  if (host < hosts_.size()) return &hosts_[host];
  malformed(what);
  return nullptr;
}

void AwayLauncher::on_frame(const Frame& frame) {
  const Status taken =
      route(frame.header, frame.payload, when<HostLaunched>([&](const HostLaunched& said) { on_launched(said); }),
            when<HostNotLaunched>([&](const HostNotLaunched& said) { on_not_launched(said); }),
            when<HostEnded>([&](const HostEnded& said) { on_ended(said); }));
  if (taken.ok()) return;
  log_warn("the machine that launches the hosts: ", taken.error().message);
  channel_->close();
}

void AwayLauncher::on_launched(const HostLaunched& launched) {
  Host* state = known(launched.host, "a launch");
  // Destroyed meanwhile: its end will be told.
  if (state == nullptr || state->phase != Phase::kLaunching) return;
  state->phase = Phase::kLaunched;
  handlers_.on_launched(HostId(launched.host), launched.worker);
}

void AwayLauncher::on_not_launched(const HostNotLaunched& failed) {
  Host* state = known(failed.host, "a failure");
  if (state == nullptr || state->phase != Phase::kLaunching) return;
  state->phase = Phase::kFailed;
  handlers_.on_failed(HostId(failed.host), failed.failure);
}

void AwayLauncher::on_ended(const HostEnded& ended) {
  Host* state = known(ended.host, "an end");
  if (state == nullptr || state->phase == Phase::kEnded) return;
  state->phase = Phase::kEnded;
  handlers_.on_ended(HostId(ended.host), ended.how, ended.orderly);
}

}  // namespace monarch
