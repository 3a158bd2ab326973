#include "cli/follow/viewer_session.h"

#include "cli/args/say.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kReconnectDeadline = Duration::seconds(15);  // a guard needs less to start a supervisor again
constexpr Duration kReconnectPeriod = Duration::milliseconds(100);
constexpr Duration kSilentAtFirst = Duration::seconds(2);  // of a supervisor that is being started nothing need be said

}  // namespace

Result<std::unique_ptr<ViewerSession>> ViewerSession::create(const JobView& job, const JobSpec& spec,
                                                             const Context& context, SignalFd& signals,
                                                             SessionOptions options) {
  MONARCH_ASSIGN(auto loop, EventLoop::create());
  std::unique_ptr<ViewerSession> session(
      new ViewerSession(std::move(loop), job, spec, context, signals, std::move(options)));
  ViewerSession* self = session.get();
  MONARCH_ASSIGN(const WatchId watch,
                 self->loop_->watch(signals.descriptor(), Interest::kRead, [self](Readiness) { self->on_signals(); }));
  (void)watch;  // for as long as the loop lives
  return session;
}

ViewerSession::ViewerSession(std::unique_ptr<EventLoop> loop, const JobView& job, const JobSpec& spec,
                             const Context& context, SignalFd& signals, SessionOptions options)
    : loop_(std::move(loop)),
      job_(job),
      spec_(spec),
      signals_(signals),
      options_(std::move(options)),
      screen_(*loop_, context.terminal),
      policy_(options_.kind),
      announcer_(spec, context.terminal),
      pending_stop_(options_.stop),
      phase_since_(loop_->now()),
      next_word_(loop_->now() + limits::kNamesMissingEvery),
      slurm_(LostSubmission::of(job)) {
  if (options_.input) input_ = std::make_unique<InputFeed>(*loop_, *options_.input);
  if (options_.output) {
    output_ = std::make_unique<RankOutput>(*loop_, screen_, spec_,
                                           RankOutputOptions{.lines = options_.lines,
                                                             .job_id = job_.id(),
                                                             .log_directory = job_.log_directory(),
                                                             .wanted = options_.wanted,
                                                             .hosts = options_.hosts});
    output_->start_at(options_.start);
    if (!options_.from_the_start) output_->skip_what_is_there();
    if (options_.reader_decides) {
      output_->on_reader_gone([this] { leave(kExitOk); });
    }
  }
}

ViewerSession::~ViewerSession() = default;

SessionEnd ViewerSession::follow() {
  if (options_.stop_after) {
    loop_->at(loop_->now() + *options_.stop_after, [this] {
      if (ending_) return;
      say(text("--timeout ", to_text(*options_.stop_after), " is over: stopping"));
      policy_.stop_asked();
      send_stop({.how = StopHow::kOrderly,
                 .interrupted = false,
                 .exit_code = kExitTimeout,
                 .who = "--timeout of " + options_.viewer});
    });
  }
  if (options_.leave_after) {
    loop_->at(loop_->now() + *options_.leave_after, [this] {
      if (ending_) return;
      say(text("--timeout ", to_text(*options_.leave_after), " is over, and ", job_.id(), " has not ended"));
      leave(kExitTimeout);
    });
  }
  if (output_ != nullptr) output_->watch_files();
  if (!options_.from_the_start) {
    // Events from before are history: `monarch events` shows them.
    const auto before = job_.events();
    if (before.ok() && !before->events.empty()) last_event_ = before->events.back().number;
  }
  open_group("start");
  connect_or_retry();
  tick_later();
  loop_->run();
  close_group();
  screen_.make_room();
  note_lost_output(screen_.terminal(), screen_.out().error());
  note_lost_errors(screen_.terminal(), screen_.err().error());
  return end_;
}

Status ViewerSession::connect() {
  MONARCH_ASSIGN(const Endpoint endpoint, job_.endpoint());
  const ViewerAddress supervisor = viewer_address(endpoint);
  MONARCH_ASSIGN(client_,
                 SupervisorClient::connect(*loop_, supervisor,
                                           {.on_event = [this](const JobEvent& event) { on_event(event); },
                                            .on_verdict = [this](const Verdict& verdict) { on_verdict(verdict); },
                                            .on_closed = [this](const Error& why) { on_lost(why); }}));
  MONARCH_TRY(client_->attach(options_.viewer, last_event_));
  // A lost connection for output alone costs nothing: the files are looked at, and the other connection tells of a lost
  // supervisor.
  if (output_ != nullptr) MONARCH_TRY(output_->connect(supervisor, options_.viewer, [](const Error&) {}));
  return {};
}

void ViewerSession::connect_or_retry() {
  auto connected = connect();
  if (connected.ok()) return on_connected();
  client_.reset();
  // Somebody else's socket is not going to become ours.
  if (connected.error().code == ErrorCode::kInvalid) {
    say(text("cannot follow ", job_.id(), ": ", connected.error().message));
    return leave(kExitInternal);
  }
  if (lost_at_ == Instant::never()) lost_at_ = loop_->now();
  retry();
}

void ViewerSession::on_connected() {
  if (lost_at_ != Instant::never() && last_event_ > 0) say("connected again");
  lost_at_ = Instant::never();
  told_lost_ = false;
  if (slurm_) slurm_->found_again();
  if (!options_.from_the_start) {
    client_->request(StatusRequest{}, [this](const Result<JobStatus>& status) {
      if (status.ok()) announcer_.on_status(*status);
    });
  }
  if (options_.on_door) ask_for_door();
  if (pending_stop_) send_stop(*pending_stop_);
  if (input_ == nullptr) return;
  input_->connected([this](const InputRequest& request, std::function<void(Result<Accepted>)> answer) {
    if (client_ != nullptr) client_->request(request, std::move(answer));
  });
}

void ViewerSession::ask_for_door() {
  client_->request(DoorRequest{}, [this](const Result<JobStatus>& status) {
    if (status.ok()) {
      if (const auto then = std::exchange(options_.on_door, nullptr)) write_json(then(*status));
      leave_running();
    } else if (status.error().code == ErrorCode::kTimeout && client_ != nullptr) {
      ask_for_door();  // hosts may need longer than an answer may
    } else if (status.error().code == ErrorCode::kInvalid) {
      options_.on_door = nullptr;  // this supervisor tells nobody
      leave_running();
    }
  });
}

void ViewerSession::send_stop(const StopRequest& request) {
  pending_stop_ = request;  // asked for again after a lost connection: the next supervisor has not heard it
  if (client_ == nullptr) return;
  client_->request(request, [this](const Result<Accepted>& answer) {
    if (!answer.ok() && answer.error().code == ErrorCode::kInvalid) {
      say(text("the supervisor refuses to stop: ", answer.error().message));
    }
  });
}

void ViewerSession::on_lost(const Error& why) {
  if (input_ != nullptr) input_->lost();
  if (ending_) return;
  lost_at_ = loop_->now();
  told_lost_ = options_.events || options_.kind == ViewerKind::kOwner;
  if (told_lost_) {
    say(text("lost the supervisor of ", job_.id(), " (", printable(why.message),
             "); its guard starts a crashed one again"));
  }
  // We are inside a handler of the client's: it goes when the turn is over.
  loop_->defer([this] {
    client_.reset();
    if (output_ != nullptr) output_->disconnect();
    retry();
  });
}

void ViewerSession::retry() {
  if (ending_) return;
  // The file appears when the supervisor has ended in order; what the journal alone knows is asked at the end.
  const auto verdict = job_.live() ? Result<std::optional<Verdict>>(std::optional<Verdict>()) : job_.verdict();
  if (verdict.ok() && *verdict) return on_unseen_end(**verdict);
  if (loop_->now() >= lost_at_ + kReconnectDeadline) {
    if (!slurm_) return give_up();
    const auto answer =
        slurm_->ask(pending_stop_, signals_.descriptor(), [this](const std::string& line) { say(line); });
    if (answer.nobody_knows) return give_up();
    if (answer.verdict) return on_unseen_end(*answer.verdict);
  }
  if (!told_lost_ && loop_->now() >= lost_at_ + kSilentAtFirst) {
    told_lost_ = true;
    say(text("no supervisor of ", job_.id(), " answers; waiting up to ", to_text(kReconnectDeadline),
             " for its guard to start one"));
  }
  loop_->at(loop_->now() + kReconnectPeriod, [this] {
    if (!ending_) connect_or_retry();
  });
}

// The supervisor left before it was asked for all that happened: its journal has the rest.
void ViewerSession::on_unseen_end(const Verdict& verdict) {
  if (const auto known = job_.events(); known.ok()) {
    for (const JobEvent& event : known->events) {
      if (!ending_) on_event(event);
    }
  }
  on_verdict(verdict);
}

void ViewerSession::give_up() {
  const auto verdict = job_.verdict();
  if (verdict.ok() && *verdict) return on_unseen_end(**verdict);
  say(text("no supervisor of ", job_.id(), " has answered for ", to_text(kReconnectDeadline),
           ", and it left no verdict", verdict.ok() ? "" : text(" (", verdict.error().message, ")"), "; see ",
           job_.path(), "/supervisor.log; what runs of it ends by itself, or goes on with `monarch up --resume ",
           job_.id(), "`"));
  end_.exit_code = kExitInternal;
  if (output_ == nullptr) return leave(kExitInternal);
  ending_ = true;
  output_->finish([this] { stop_when_written(); });
}

}  // namespace monarch
