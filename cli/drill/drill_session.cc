#include "cli/drill/drill_session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/args/say.h"
#include "supervisor/client/link/viewer_address.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kPollPeriod = Duration::milliseconds(250);
constexpr std::size_t kSampleBytes = 64U << 20U;
constexpr Duration kTickPeriod = Duration::milliseconds(20);
constexpr Duration kAgainPeriod = Duration::milliseconds(100);
constexpr Duration kNoSupervisor = Duration::seconds(30);  // then nobody starts one any more
constexpr Duration kNoAnswers = Duration::seconds(60);     // though somebody holds the connection
constexpr Duration kDrillLease = Duration::seconds(30);
constexpr Duration kLastWords = Duration::seconds(15);  // until everything is taken back

}  // namespace

Result<std::unique_ptr<DrillSession>> DrillSession::create(const JobView& job, const JobSpec& spec,
                                                           const Context& context, SignalFd& signals,
                                                           DrillSessionOptions options) {
  MONARCH_ASSIGN(auto loop, EventLoop::create());
  std::unique_ptr<DrillSession> session(
      new DrillSession(std::move(loop), job, spec, context, signals, std::move(options)));
  DrillSession* self = session.get();
  MONARCH_TRY(self->reach());
  MONARCH_ASSIGN(const WatchId watch,
                 self->loop_->watch(signals.descriptor(), Interest::kRead, [self](Readiness) { self->on_signals(); }));
  (void)watch;  // for as long as the loop lives
  return session;
}

DrillSession::DrillSession(std::unique_ptr<EventLoop> loop, const JobView& job, const JobSpec& spec,
                           const Context& context, SignalFd& signals, DrillSessionOptions options)
    : loop_(std::move(loop)),
      job_(&job),
      spec_(spec),
      context_(context),
      signals_(signals),
      options_(std::move(options)),
      core_(options_.plan),
      words_{.drill = options_.drill,
             .who = text("monarch drill, pid ", ::getpid()),
             .forgiven = options_.plan.scenario.budgets == drill::Budgets::kForgiven} {
  record_.scenario = options_.plan.scenario;
  record_.seed = options_.plan.seed;
  record_.times = options_.plan.times;
  record_.meshes = options_.plan.meshes;
  record_.job_id = job.id();
  record_.started = wall_now();
}

DrillSession::~DrillSession() = default;

drill::DrillNow DrillSession::now() const { return {boot_now(), wall_now()}; }

void DrillSession::say(const std::string& line) { say_note(context_.terminal, line); }

void DrillSession::run() {
  heard_at_ = loop_->now();
  connect_or_retry();
  poll();
  tick();
  loop_->run();
}

Status DrillSession::connect() {
  MONARCH_ASSIGN(const Endpoint endpoint, job_->endpoint());
  MONARCH_ASSIGN(client_,
                 SupervisorClient::connect(*loop_, viewer_address(endpoint),
                                           {.on_event = [this](const JobEvent& event) { on_event(event); },
                                            .on_verdict = [this](const Verdict& verdict) { on_verdict(verdict); },
                                            .on_closed = [this](const Error&) { on_lost(); }}));
  return client_->attach("drill", last_event_);
}

void DrillSession::connect_or_retry() {
  if (finishing_ || client_ != nullptr) return;
  const Status connected = connect();
  if (connected.ok()) return on_connected();
  client_.reset();
  if (lost_at_ == Instant::never()) lost_at_ = loop_->now();
  const auto verdict = job_->live() ? Result<std::optional<Verdict>>(std::optional<Verdict>()) : job_->verdict();
  if (verdict.ok() && *verdict) return on_verdict(**verdict);
  if (loop_->now() >= lost_at_ + kNoSupervisor) {
    core_.cut_short(text("no supervisor of ", job_->id(), " has answered for ", to_text(kNoSupervisor)), now());
    return act();
  }
  loop_->at(loop_->now() + kAgainPeriod, [this] { connect_or_retry(); });
}

void DrillSession::on_connected() {
  lost_at_ = Instant::never();
  renew();
  for (const auto& [number, blow] : std::map(untold_)) tell(blow);
}

void DrillSession::on_lost() {
  // We are inside a handler of the client's: it goes when the turn is over.
  loop_->defer([this] {
    client_.reset();
    asking_ = false;
    core_.on_supervisor_lost();
    act();
    connect_or_retry();
  });
}

void DrillSession::renew() {
  if (client_ == nullptr || finishing_) return;
  DrillNotice begin{.what = DrillWhat::kBegin, .drill = words_.drill, .name = record_.scenario.name};
  begin.forgiven = words_.forgiven;
  begin.lease = kDrillLease;
  begin.who = words_.who;
  client_->request(begin, [this](const Result<Accepted>& answer) {
    if (answer.ok()) {
      begun_ = true;
    } else if (answer.error().code == ErrorCode::kInvalid) {
      if (!begun_) refused_ = answer.error().message;
      core_.cut_short(answer.error().message, now());
      act();
    }
  });
}

void DrillSession::on_event(const JobEvent& event) {
  if (event.number > 0) {
    if (event.number <= last_event_) return;
    last_event_ = event.number;
  }
  record_.events.push_back(event);
  core_.on_event(event, now());
  act();
}

void DrillSession::on_verdict(const Verdict& verdict) {
  if (record_.verdict) return;
  record_.verdict = verdict;
  if (options_.next_job && !core_.over()) return loop_->defer([this] { go_on_with_next(); });
  const Duration after =
      Duration::nanoseconds(wall_now().nanoseconds_since_epoch - record_.started.nanoseconds_since_epoch);
  core_.cut_short(
      text("the job ended by itself after ", to_text(Duration::seconds(after.count_milliseconds() / 1'000)), ": ",
           printable(verdict.reason),
           verdict.outcome == Outcome::kSucceeded ? "; a drill needs a program that goes on for as long" : ""),
      now());
  act();
}

void DrillSession::note_sample(const JobStatus& status, WallTime at) {
  drill::DrillSample sample = drill::sample_of(status, core_.watch(), record_.meshes.size(), at);
  sample.job = jobs_before_;
  record_.samples.push_back(std::move(sample));
  drill::thin(record_.samples, kSampleBytes);
}

// What is in effect on the hosts of the job that has ended is taken back by the ends of its talks.
void DrillSession::go_on_with_next() {
  client_.reset();
  asking_ = false;
  untold_.clear();
  injector_.reset();
  reach_.reset();
  in_effect_.clear();
  awaited_ = 0;
  auto next = options_.next_job(*job_);
  // What it did between the last time that it was asked and its end, it has left behind.
  if (const auto status = job_->status_from_journal(spec_); status.ok()) note_sample(*status, wall_now());
  ++jobs_before_;
  if (next == nullptr) {
    core_.cut_short("no job goes on from the one that has ended", now());
    return act();
  }
  next_ = std::move(next);
  job_ = next_.get();
  record_.verdict.reset();
  last_event_ = 0;
  core_.on_new_job(now());
  if (const Status reached = reach(); !reached.ok()) {
    core_.cut_short(reached.error().message, now());
    return act();
  }
  connect_or_retry();
}

void DrillSession::on_signals() {
  while (const auto received = signals_.next()) {
    const SignalAnswer answer = policy_.on_signal(received->number);
    switch (answer.action) {
      case SignalAction::kStop:
        record_.interrupted = true;
        say("interrupted: what was injected is taken back");
        core_.cut_short("interrupted", now());
        act();
        break;
      case SignalAction::kKill:
      case SignalAction::kLeave:
      case SignalAction::kDetach: loop_->stop(); break;
      case SignalAction::kForward:
      case SignalAction::kIgnore: break;
    }
  }
}

void DrillSession::poll() {
  if (finishing_) return;
  // One that a fault of ours has stopped goes on when that is over.
  if (!in_effect_.empty()) heard_at_ = loop_->now();
  if (loop_->now() >= heard_at_ + kNoAnswers) {
    core_.cut_short(text("the supervisor of ", job_->id(), " has not answered for ", to_text(kNoAnswers)), now());
    return act();
  }
  if (client_ != nullptr && !asking_) {
    asking_ = true;
    client_->request(StatusRequest{}, [this](const Result<JobStatus>& status) {
      asking_ = false;
      if (!status.ok()) return;
      heard_at_ = loop_->now();
      hosts_.clear();
      for (const HostStatus& host : status->hosts) hosts_.push_back(host.name);
      drilled_.supervisor_pid = status->supervisor_pid;
      const drill::DrillNow at = now();
      core_.on_status(*status, at);
      note_sample(*status, at.wall);
      act();
    });
  }
  loop_->at(loop_->now() + kPollPeriod, [this] { poll(); });
}

void DrillSession::tick() {
  core_.on_tick(now());
  act();
  if (finishing_) {
    if (in_effect_.empty() && awaited_ == 0) return loop_->stop();
    if (loop_->now() >= finish_by_) return loop_->stop();
  }
  if (loop_->now() >= renew_at_) {
    renew_at_ = loop_->now() + kDrillLease / 3;
    renew();
  }
  loop_->at(loop_->now() + kTickPeriod, [this] { tick(); });
}

void DrillSession::act() {
  for (auto actions = core_.take_actions(); !actions.empty(); actions = core_.take_actions()) {
    for (const drill::DrillAction& action : actions) perform(action);
  }
  if (core_.over() && !finishing_) finish();
}

void DrillSession::perform(const drill::DrillAction& action) {
  if (const auto* tell_of = std::get_if<drill::TellOfBlow>(&action)) {
    tell(tell_of->blow);
  } else if (const auto* now_strike = std::get_if<drill::StrikeNow>(&action)) {
    strike(now_strike->blow);
  } else if (const auto* back = std::get_if<drill::TakeBack>(&action)) {
    take_back(back->number);
  } else if (const auto* told = std::get_if<drill::TellTakenBack>(&action)) {
    send(notice_of(told->blow, DrillWhat::kUndone, words_));
  } else if (const auto* forgive = std::get_if<drill::Forgive>(&action)) {
    if (client_ == nullptr) return;
    client_->request(
        OperatorRequest{.wish = OperatorWish::kRetry, .ranks = forgive->ranks, .hosts = {}, .who = words_.who},
        [](const Result<Accepted>&) {});  // what it could not forgive is seen by who is struck next
  } else if (const auto* look = std::get_if<drill::LookForRanks>(&action)) {
    look_for_ranks(look->hosts);
  } else if (const auto* phase = std::get_if<drill::SayPhase>(&action)) {
    say(phase->words);
  }
}

void DrillSession::tell(const drill::Blow& blow) {
  untold_.insert_or_assign(blow.number, blow);
  if (client_ == nullptr) return;
  say(text("fault ", blow.number, ": ", blow_words(blow)));
  client_->request(notice_of(blow, DrillWhat::kFault, words_),
                   [this, number = blow.number](const Result<Accepted>& answer) {
                     const bool refused = !answer.ok() && answer.error().code == ErrorCode::kInvalid;
                     const bool late = !answer.ok() && answer.error().code == ErrorCode::kTimeout;
                     const auto known = untold_.find(number);
                     if (known == untold_.end()) return;
                     if (late) return tell(drill::Blow(known->second));
                     if (!answer.ok() && !refused) return;  // the supervisor is lost: the next one is told
                     untold_.erase(known);
                     core_.on_told(number, refused ? answer.error().message : "", now());
                     act();
                   });
}

void DrillSession::send(const DrillNotice& notice) {
  // A lost supervisor's successor hears of the end of the fault when the job has recovered from it.
  if (client_ != nullptr) client_->request(notice, [](const Result<Accepted>&) {});
}

std::optional<HostId> DrillSession::host_of(const std::string& name) const {
  const auto found = std::find(hosts_.begin(), hosts_.end(), name);
  if (found == hosts_.end()) return std::nullopt;
  return HostId(static_cast<std::uint32_t>(found - hosts_.begin()));
}

void DrillSession::finish() {
  finishing_ = true;
  finish_by_ = loop_->now() + kLastWords;
  if (client_ == nullptr || !begun_) return;
  ++awaited_;
  client_->request(DrillNotice{.what = DrillWhat::kEnd, .drill = words_.drill, .who = words_.who},
                   [this](const Result<Accepted>&) { --awaited_; });
}

drill::DrillRecord DrillSession::take_record() {
  core_.write(record_);
  record_.ended = wall_now();
  return std::move(record_);
}

}  // namespace monarch
