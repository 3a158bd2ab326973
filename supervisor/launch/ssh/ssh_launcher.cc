#include "supervisor/launch/ssh/ssh_launcher.h"

#include <algorithm>
#include <utility>

#include "supervisor/launch/ssh/session/ssh_target.h"
#include "supervisor/launch/talk/way_back.h"
#include "supervisor/workspace/scan.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {

namespace {

// How often a session says how far it is. What finds no room is said again by the next one.
constexpr Duration kSentEvery = Duration::seconds(1);
constexpr std::size_t kSentReports = 4'096;

// Between two attempts to end a worker whose host does not answer.

// Between two attempts to open a tunnel again. The first are quick: within its lease, a host that is back has lost
// nothing.
constexpr Duration kFirstTunnelRetry = Duration::milliseconds(100);
constexpr Duration kLongestTunnelRetry = Duration::seconds(3);
// How long sshd may take to say on which ports it listens.
constexpr Duration kTunnelPatience = Duration::seconds(10);
// How long a shell there may take to say which process holds the session. Without that a silent end of it is mended
// late.
constexpr Duration kMarkPatience = Duration::seconds(3);

// In the session's thread. What may lie there already if it fails, is ended with the rest.
RemoteResult give_workspace(SshSession& session, RemoteOrder order, const WorkerImage* image, RemoteTalkOptions options,
                            const std::function<void(WorkspaceSent)>& tell) {
  options.on_sent = [&tell, told = Instant::since_boot(Duration::zero())](std::uint64_t bytes,
                                                                          std::uint64_t of) mutable {
    const Instant now = boot_now();
    if (now < told + kSentEvery) return;
    told = now;
    tell({.bytes = bytes, .of = of});
  };
  const Instant began = boot_now();
  const std::string host = order.mark.host_name;
  order.manifest = options.workspace->manifest();
  order.blobs = options.workspace->blobs().size();
  RemoteResult made = remote_talk(session, std::move(order), image, options);
  tell({.over = true, .has_all = std::holds_alternative<RemoteWorkspace>(made.answer)});
  if (const auto* failure = std::get_if<LaunchFailure>(&made.answer)) {
    made.handed_over = failure->phase == "workspace" && may_have_run(made.answer);
  }
  if (const auto* sent = std::get_if<RemoteWorkspace>(&made.answer)) {
    log_info(host, ": workspace: ", amount_text(sent->bytes), " of ", amount_text(options.workspace->bytes()),
             " sent in ", to_text(boot_now() - began));
  }
  return made;
}

}  // namespace

Result<std::unique_ptr<SshLauncher>> SshLauncher::create(EventLoop& loop, SshLauncherOptions options,
                                                         LauncherHandlers handlers) {
  MONARCH_ASSERT(options.access.image != nullptr || !options.access.installed.empty());
  std::unique_ptr<SshLauncher> launcher(new SshLauncher(loop, std::move(options), std::move(handlers)));
  auto on_sent = [self = launcher.get()](const SentReport& report) { self->on_sent(report); };
  MONARCH_ASSIGN(launcher->sent_, WatchedInbox<SentReport>::create(loop, kSentReports, std::move(on_sent)));
  MONARCH_ASSIGN(launcher->pool_, SshPool::create(loop, launcher->options_.pool));
  return launcher;
}

SshLauncher::~SshLauncher() {
  for (Host& host : hosts_) loop_.cancel(std::exchange(host.retry, 0));
}

void SshLauncher::on_sent(const SentReport& report) {
  auto words = progress_.note(options_.access.hosts[report.host.value()].name, report.sent, loop_.now());
  if (words && handlers_.on_sending) handlers_.on_sending(std::move(*words));
}

RemoteOrder SshLauncher::order_of(HostId host, RemotePurpose purpose) const {
  RemoteOrder order = options_.access.order(purpose);
  order.mark = {.job_uuid = options_.job.to_text(),
                .host_name = options_.access.hosts[host.value()].name,
                .job_id = options_.job_id};
  return order;
}

void SshLauncher::launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = hosts_.at(host.value());
  drop(state);
  state.phase = Phase::kLaunching;
  state.began = loop_.now();
  if (options_.workspace && !pack_) {
    state.waiting = bootstrap;
    return;
  }
  submit_launch(host, bootstrap);
}

Status SshLauncher::pack_workspace(UniqueFd folder, WorkspaceSpec workspace) {
  const auto on_made = [this](MadePack pack) {
    if (pack.ok()) {
      log_info("workspace: ", (*pack)->files(), " files, ", amount_text((*pack)->bytes()));
      for (const std::string& left_out : (*pack)->left_out()) log_warn("workspace: left out: ", left_out);
    }
    on_workspace(std::move(pack));
  };
  MONARCH_ASSIGN(packer_, PackThread::start(loop_, std::move(folder), std::move(workspace), on_made));
  return {};
}

void SshLauncher::on_workspace(MadePack pack) {
  pack_ = std::move(pack);
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    // A failure told may launch another.
    if (const auto waiting = std::exchange(hosts_[i].waiting, std::nullopt)) {
      submit_launch(HostId(static_cast<std::uint32_t>(i)), *waiting);
    }
  }
}

void SshLauncher::submit_launch(HostId host, const Bootstrap& bootstrap) {
  Host& state = hosts_[host.value()];
  if (pack_ && !pack_->ok()) {
    LaunchFailure failure{.phase = "workspace", .message = pack_->error().message};
    failure.elapsed = loop_.now() - state.began;
    // Not within the core's own turn.
    loop_.defer([this, host, failure] { fail(host, failure, Phase::kUntouched); });
    return;
  }
  FrameHeader header;
  header.job = options_.job;
  header.term = options_.term;
  const SshHostCheck check = std::exchange(state.check, false) ? options_.check : SshHostCheck();
  // Values of its own for the thread: of this object nothing but the inbox is touched there.
  auto talk = [this, host, header, there = Bootstrap(bootstrap), order = order_of(host, RemotePurpose::kStart),
               tree = order_of(host, RemotePurpose::kWorkspace), pack = pack_ ? **pack_ : nullptr,
               route = options_.access.hosts[host.value()].route, way = options_.way_back,
               image = options_.access.image, silence = options_.silence, began = state.began, sent = &sent_->inbox(),
               check](SshSession& session, int cancel) mutable -> SshVisit {
    const Instant opened = boot_now();
    if (auto unwell = check ? check(session, host, cancel) : std::nullopt) {
      return [this, host, unwell = std::move(*unwell)] { fail(host, unwell, Phase::kUntouched); };
    }
    const auto tell = [host, sent](WorkspaceSent how) { (void)sent->put(SentReport{host, how}); };
    auto back = point_back(session, route, way, there, {silence, cancel});
    if (auto* failure = std::get_if<LaunchFailure>(&back)) {
      return [this, host, failure = std::move(*failure)] { fail(host, failure, Phase::kUntouched); };
    }
    order.bootstrap = encode_frame({header, encode_payload(there)});
    const RemoteTalkOptions talk_options{.cancel = cancel, .silence = silence, .workspace = pack.get()};
    Duration copied;
    if (pack) {
      RemoteResult made = give_workspace(session, std::move(tree), image.get(), talk_options, tell);
      copied = boot_now() - opened;
      if (!std::holds_alternative<RemoteWorkspace>(made.answer)) {
        return [this, host, made = std::move(made)] { on_launch_result(host, made, {}); };
      }
    }
    auto result = remote_talk(session, std::move(order), image.get(), talk_options);
    result.copy = result.copy + copied;
    result.handed_over = result.handed_over || pack != nullptr;
    LaunchedWorker launched{.control_endpoint = there.control_endpoint,
                            .bulk_endpoint = there.bulk_endpoint,
                            .again = way_back_test(route, way, there.control_endpoint),
                            .times = {.waited = opened - session.opened_in() - began,
                                      .log_in = session.opened_in(),
                                      .copy = result.copy,
                                      .start = boot_now() - opened - result.copy}};
    const bool runs = std::holds_alternative<BootstrapReply>(result.answer);
    SshVisit visit([this, host, result = std::move(result), launched = std::move(launched)] {
      on_launch_result(host, result, launched);
    });
    auto& tunnel = std::get<std::shared_ptr<SshTunnel>>(back);
    if (tunnel && runs) visit.stay = stay_in(host, session, std::move(tunnel), std::nullopt);
    return visit;
  };
  state.ticket = pool_->submit(
      {.route = options_.access.hosts[host.value()].route,
       .talk = std::move(talk),
       .on_failed = [this, host](LaunchFailure failure) { fail(host, std::move(failure), Phase::kUntouched); }});
}

void SshLauncher::on_launch_result(HostId host, RemoteResult result, LaunchedWorker launched) {
  Host& state = hosts_[host.value()];
  if (auto* failure = std::get_if<LaunchFailure>(&result.answer)) {
    failure->again =
        reproducer(options_.access.hosts[host.value()].route, shown_by(failure->kind, options_.access.installed));
    return fail(host, std::move(*failure), result.handed_over ? Phase::kUnknown : Phase::kUntouched);
  }
  auto* reply = std::get_if<BootstrapReply>(&result.answer);
  MONARCH_ASSERT(reply != nullptr);
  launched.reply = std::move(*reply);
  state.phase = Phase::kLaunched;
  // With a tunnel, the session goes on under the same ticket.
  if (tunnelled()) {
    state.there = {endpoint_port(launched.control_endpoint), endpoint_port(launched.bulk_endpoint)};
  } else {
    state.ticket = 0;
  }
  handlers_.on_launched(host, std::move(launched));
}

void SshLauncher::fail(HostId host, LaunchFailure failure, Phase next) {
  Host& state = hosts_[host.value()];
  if (state.phase != Phase::kLaunching) return;
  state.ticket = 0;
  state.phase = next;
  failure.elapsed = loop_.now() - state.began;
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
  if (std::exchange(state.waiting, std::nullopt)) {
    state.phase = Phase::kUntouched;
    loop_.defer([this, host] { tell_ended(host, "was not running", true); });
    return;
  }
  const bool started = state.phase != Phase::kLaunching;  // else a ticket is of its first session there
  state.phase = Phase::kEnding;
  state.tries = 0;
  const SshPool::Ticket launching = std::exchange(state.ticket, 0);
  if (launching == 0) return submit_end(host);
  // What the launch still says to the host must not come after the order to end.
  pool_->cancel(launching, [this, host, started](SshPool::Talk talk) {
    if (hosts_[host.value()].phase != Phase::kEnding) return;
    // Whoever was never logged in there needs no proof that nothing runs, and might never be let in to get it.
    if (!started && talk == SshPool::Talk::kNever) return tell_ended(host, "was not reached", true);
    submit_end(host);
  });
}

void SshLauncher::submit_end(HostId host) {
  auto talk = [this, host, order = order_of(host, RemotePurpose::kEnd), image = options_.access.image,
               silence = options_.silence](SshSession& session, int cancel) -> std::function<void()> {
    auto result = remote_talk(session, order, image.get(), {.cancel = cancel, .silence = silence});
    return [this, host, answer = std::move(result.answer)] { on_end_answer(host, answer); };
  };
  Host& state = hosts_[host.value()];
  ++state.tries;
  state.ticket = pool_->submit({.route = options_.access.hosts[host.value()].route,
                                .talk = std::move(talk),
                                .on_failed = [this, host](LaunchFailure failure) { try_end_again(host, failure); }});
}

void SshLauncher::on_end_answer(HostId host, const RemoteAnswer& answer) {
  if (const auto* failure = std::get_if<LaunchFailure>(&answer)) return try_end_again(host, *failure);
  const auto* ended = std::get_if<RemoteEnded>(&answer);
  MONARCH_ASSERT(ended != nullptr);
  tell_ended(host, ended->how(), ended->orderly());
}

// Until the host has answered nothing is proven. What follows from the time that takes is the core's to decide.
void SshLauncher::try_end_again(HostId host, const LaunchFailure& failure) {
  Host& state = hosts_[host.value()];
  if (state.phase != Phase::kEnding) return;
  state.ticket = 0;
  const std::string& name = options_.access.hosts[host.value()].name;
  if (state.tries == 1) log_warn(name, ": ending its worker: ", printable(failure.message), "; trying again");
  const Duration wait = pause_before_retry(state.tries - 1);
  state.retry = loop_.at(loop_.now() + wait, [this, host] {
    hosts_[host.value()].retry = 0;
    submit_end(host);
  });
}

void SshLauncher::on_goodbye(HostId host, bool orderly) {
  const Phase phase = hosts_.at(host.value()).phase;
  if (phase == Phase::kEnded || phase == Phase::kUntouched) return;
  drop(hosts_[host.value()]);
  tell_ended(host, orderly ? "it left" : "its keeper was killed, and its ranks with it", orderly);
}

void SshLauncher::tell_ended(HostId host, std::string how, bool orderly) {
  hosts_[host.value()].phase = Phase::kEnded;
  hosts_[host.value()].ticket = 0;
  handlers_.on_ended(host, std::move(how), orderly);
}

// What runs in the session's thread. The tunnel ends with the visit, before its session. Which process holds it there
// is asked once a worker runs, not before.
std::function<std::function<void()>(int)> SshLauncher::stay_in(HostId host, SshSession& session,
                                                               std::shared_ptr<SshTunnel> tunnel,
                                                               std::optional<SessionMark> mark) {
  return [this, host, &session, tunnel = std::move(tunnel), mark](int cancel) -> std::function<void()> {
    const SessionMark of = mark ? *mark : mark_session(session, {}, {kMarkPatience, cancel});
    const Error why = tunnel->carry(cancel);
    return [this, host, of, message = why.message] { on_tunnel_ended(host, message, of); };
  };
}

void SshLauncher::adopt(HostId host, const AdoptedHost& there) {
  Host& state = hosts_.at(host.value());
  if (!there.runs || !tunnelled() || state.phase != Phase::kUnknown) return;
  state.there = {endpoint_port(there.control_endpoint), endpoint_port(there.bulk_endpoint)};
  state.phase = Phase::kLaunched;
  open_tunnel(host);
}

void SshLauncher::open_tunnel(HostId host) {
  Host& state = hosts_[host.value()];
  auto talk = [this, host, wanted = state.there, before = state.session, way = options_.way_back](
                  SshSession& session, int cancel) -> SshVisit {
    // If nobody told that one's sshd of its end, it still has the ports.
    const SessionMark mark = mark_session(session, before, {kMarkPatience, cancel});
    auto opened = SshTunnel::open(session, {.wanted = wanted, .ports = way.tunnel, .silence = way.silence},
                                  {kTunnelPatience, cancel});
    if (!opened.ok()) {
      return [this, host, message = opened.error().message] { on_tunnel_ended(host, message); };
    }
    SshVisit visit([this, host] { on_tunnel_open(host); });
    visit.stay = stay_in(host, session, std::shared_ptr<SshTunnel>(std::move(*opened)), mark);
    return visit;
  };
  state.ticket = pool_->submit({.route = options_.access.hosts[host.value()].route,
                                .talk = std::move(talk),
                                .on_failed = [this, host](LaunchFailure why) { on_tunnel_ended(host, why.message); }});
}

void SshLauncher::on_tunnel_open(HostId host) {
  log_info(options_.access.hosts[host.value()].name, ": its tunnel is open again");
  hosts_[host.value()].tries = 0;
}

// While it does not work its host is silent, and what follows from that is the core's to decide: it may order the
// host's end.
void SshLauncher::on_tunnel_ended(HostId host, const std::string& why, const SessionMark& of) {
  Host& state = hosts_[host.value()];
  state.ticket = 0;
  if (of.known()) state.session = of;
  if (state.phase != Phase::kLaunched) return;
  if (state.tries == 0) {
    log_warn(options_.access.hosts[host.value()].name, ": its tunnel: ", printable(why), "; opening it again");
  }
  const Duration wait =
      std::min(kFirstTunnelRetry * (std::int64_t{1} << std::min<std::uint32_t>(state.tries, 8)), kLongestTunnelRetry);
  ++state.tries;
  state.retry = loop_.at(loop_.now() + wait + pool_->up_to(wait), [this, host] {
    hosts_[host.value()].retry = 0;
    open_tunnel(host);
  });
}

void SshLauncher::drop(Host& host) {
  host.waiting.reset();
  if (host.ticket != 0) pool_->cancel(std::exchange(host.ticket, 0));
  loop_.cancel(std::exchange(host.retry, 0));
}

}  // namespace monarch
