#include "supervisor/launch/slurm/node_requests.h"

#include <algorithm>
#include <utility>

#include "supervisor/launch/slurm/slurm_gres.h"
#include "supervisor/launch/talk/way_back.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Between two looks at the queue: soon after something was asked, and later more seldom.
constexpr Duration kFirstPause = Duration::milliseconds(250);
constexpr Duration kLongestPause = Duration::seconds(5);

// A controller that was just started again may not know what it was asked last.
constexpr std::uint32_t kUnseenLooks = 3;

bool is_over(SlurmJobState state) { return state == SlurmJobState::kEnded || state == SlurmJobState::kEnding; }

}  // namespace

NodeRequests::NodeRequests(EventLoop& loop, SlurmCalls& calls, NodeRequestsOptions options,
                           NodeRequestsHandlers handlers)
    : loop_(loop), calls_(calls), options_(std::move(options)), handlers_(std::move(handlers)), pause_(kFirstPause) {}

NodeRequests::~NodeRequests() {
  for (auto& [host, request] : requests_) stop_timers(request);
  loop_.cancel(next_poll_);
}

void NodeRequests::stop_timers(Request& request) {
  loop_.cancel(std::exchange(request.retry, 0));
  loop_.cancel(std::exchange(request.deadline, 0));
}

template <class Then>
void NodeRequests::call(Words command, Then then) {
  calls_.call(std::move(command),
              scope_.guard([then = std::move(then)](Result<std::string> answer) { then(std::move(answer)); }));
}

void NodeRequests::ask(HostId host, std::vector<std::string> exclude) {
  Request& request = requests_[host];
  stop_timers(request);
  request.token = {.uuid = options_.uuid, .host = host, .term = options_.term.value(), .number = ++numbers_};
  request.job = 0;
  request.exclude = std::move(exclude);
  request.asked = loop_.now();
  request.told.clear();
  request.unseen = request.tries = 0;
  request.deadline = loop_.at(loop_.now() + options_.limit, [this, host] {
    requests_[host].deadline = 0;
    refuse(host, limit_message(requests_[host]));
  });
  submit(host);
}

std::string NodeRequests::limit_message(const Request& request) const {
  return text("Slurm has granted no node within ", to_text(options_.limit), " (launch.slurm.queue_limit)",
              request.job == 0 ? "" : text("; its job ", request.job, " was waiting"),
              request.told.empty() ? "" : text(": ", printable(request.told)));
}

// What the nodes are like that the job has now, and how long it may run yet, comes first.
void NodeRequests::submit(HostId host) {
  Request& request = requests_[host];
  request.step = Step::kAsking;
  const std::uint32_t number = request.token.number;
  call(job_detail_query(options_.like, options_.environment), [this, host, number](const Result<std::string>& answer) {
    const Request& now = requests_[host];
    if (now.step != Step::kAsking || now.token.number != number) return;
    const auto facts = answer.ok() ? read_job_facts(*answer, options_.like) : Result<SlurmJobFacts>(answer.error());
    if (!facts.ok()) return unsure(host, facts.error());
    // Its end is about to be told, and then nothing is wanted any more.
    if (facts->state != "RUNNING") return try_later(host, text("job ", options_.like, " is ", facts->state));
    order(host, *facts);
  });
}

void NodeRequests::order(HostId host, const SlurmJobFacts& like) {
  const Request& request = requests_[host];
  NodeOrder order{.token = request.token,
                  .name = options_.name,
                  .wish = options_.wish,
                  .like = like,
                  .exclude = request.exclude,
                  .environment = options_.environment};
  ++requests_[host].submitting;
  call(node_request_command(order), [this, host, number = request.token.number](const Result<std::string>& answer) {
    on_submitted(host, number, answer);
  });
}

void NodeRequests::on_submitted(HostId host, std::uint32_t number, const Result<std::string>& answer) {
  Request& request = requests_[host];
  --request.submitting;
  const auto job = answer.ok() ? read_submitted(*answer) : Result<std::uint32_t>(answer.error());
  if (request.step != Step::kAsking || request.token.number != number) {
    if (job.ok()) cancel(*job);  // given back meanwhile
    return poll_soon();
  }
  if (!job.ok() && is_refusal(job.error().message)) return refuse(host, job.error().message);
  if (!job.ok()) return unsure(host, job.error());
  request.step = Step::kQueued;
  request.job = *job;
  log_info("asked Slurm for a node: its job ", *job);
  poll_soon();
}

// Nobody knows what Slurm has done: that is looked at before it is asked again.
// WARNING: commands of Slurm whose munged has gone are silent for minutes (Slurm 22.05); munge(1) itself says so at
// once.
void NodeRequests::unsure(HostId host, const Error& why) {
  if (why.code != ErrorCode::kTimeout) return try_later(host, why.message);
  const std::uint32_t number = requests_[host].token.number;
  requests_[host].step = Step::kAsking;
  call(munge_query(options_.environment), [this, host, number, why](const Result<std::string>& credential) {
    const Request& now = requests_[host];
    if (now.step != Step::kAsking || now.token.number != number) return;
    const bool unknown = !credential.ok() && says_not_authenticated(credential.error().message);
    try_later(host,
              unknown ? text(why.message, "; it would not know who asks: ", credential.error().message) : why.message);
  });
}

void NodeRequests::try_later(HostId host, const std::string& why) {
  Request& request = requests_[host];
  request.step = Step::kUnsure;
  if (request.told != why) {
    request.told = why;
    handlers_.on_waiting(host, text("Slurm was asked for a node and does not answer: ", printable(why)));
  }
  const Duration pause = pause_before_retry(request.tries++);
  loop_.cancel(request.retry);
  request.retry = loop_.at(loop_.now() + pause, [this, host] {
    requests_[host].retry = 0;
    poll();
  });
}

void NodeRequests::refuse(HostId host, std::string message) {
  Request& request = requests_[host];
  if (request.step == Step::kNone || request.step == Step::kReturning) return;
  stop_timers(request);
  request.step = Step::kNone;
  handlers_.on_refused(host, {.kind = LaunchFailureKind::kNotGranted,
                              .phase = "queue",
                              .elapsed = loop_.now() - request.asked,
                              .message = std::move(message),
                              .words = {},
                              .again = {}});
}

void NodeRequests::give_back(HostId host, std::function<void()> then) {
  Request& request = requests_[host];
  stop_timers(request);
  request.step = Step::kReturning;
  request.tries = 0;
  request.on_returned.push_back(std::move(then));
  poll_soon();
}

void NodeRequests::find(HostId host, std::function<void(std::optional<GrantedNode>)> then) {
  requests_[host].on_found.push_back(std::move(then));
  poll_soon();
}

bool NodeRequests::wants_a_look(const Request& request) const {
  return request.step == Step::kQueued || request.step == Step::kReturning || !request.on_found.empty() ||
         (request.step == Step::kUnsure && request.retry == 0);
}

void NodeRequests::poll_soon() {
  pause_ = kFirstPause;
  loop_.cancel(next_poll_);
  next_poll_ = loop_.at(loop_.now(), [this] {
    next_poll_ = 0;
    poll();
  });
}

// One look for all.
void NodeRequests::poll() {
  if (polling_) {
    poll_again_ = true;
    return;
  }
  const bool wanted =
      std::any_of(requests_.begin(), requests_.end(), [this](const auto& entry) { return wants_a_look(entry.second); });
  if (!wanted) return;
  polling_ = true;
  call(requests_query(options_.name, options_.environment),
       [this](const Result<std::string>& answer) { on_jobs(answer); });
}

void NodeRequests::on_jobs(const Result<std::string>& answer) {
  polling_ = false;
  if (answer.ok()) {
    const std::vector<RequestedJob> jobs = read_requests(*answer, options_.uuid);
    std::vector<HostId> hosts;
    for (const auto& [host, request] : requests_) hosts.push_back(host);
    for (const HostId host : hosts) note(host, jobs);
  } else {
    for (auto& [host, request] : requests_) {
      if (request.step == Step::kUnsure && request.retry == 0) unsure(host, answer.error());
    }
  }
  if (std::exchange(poll_again_, false)) return poll_soon();
  loop_.cancel(next_poll_);
  next_poll_ = loop_.at(loop_.now() + pause_, [this] {
    next_poll_ = 0;
    poll();
  });
  pause_ = std::min(pause_ * 3 / 2, kLongestPause);
}

void NodeRequests::note(HostId host, const std::vector<RequestedJob>& jobs) {
  Request& request = requests_[host];
  if (!request.on_found.empty()) {
    std::optional<GrantedNode> found;
    for (const RequestedJob& job : jobs) {
      if (job.token.host == host && job.state == SlurmJobState::kRunning && !job.nodes.empty()) {
        found = GrantedNode{.job = job.job, .node = job.nodes, .waited = {}};
      }
    }
    for (const auto& then : std::exchange(request.on_found, {})) then(found);
  }
  if (request.step == Step::kReturning) return note_returning(host, jobs);
  if (request.step == Step::kQueued) cancel_older(host, jobs);
  const bool unsure = request.step == Step::kUnsure && request.retry == 0;
  if (!unsure && request.step != Step::kQueued) return;
  note_queued(host, jobs);
}

void NodeRequests::note_queued(HostId host, const std::vector<RequestedJob>& jobs) {
  Request& request = requests_[host];
  const auto mine =
      std::find_if(jobs.begin(), jobs.end(), [&](const RequestedJob& job) { return job.token == request.token; });
  if (mine == jobs.end()) {
    // Whoever was told a number may have to wait until it is in the list; a controller that has lost it never has it.
    if (request.step == Step::kQueued && ++request.unseen < kUnseenLooks) return;
    request.token.number = ++numbers_;
    request.unseen = 0;
    return submit(host);
  }
  request.step = Step::kQueued;
  request.job = mine->job;
  request.unseen = 0;
  if (mine->state == SlurmJobState::kRunning && !mine->nodes.empty()) {
    stop_timers(request);
    request.step = Step::kGranted;
    return handlers_.on_granted(host, {.job = mine->job, .node = mine->nodes, .waited = loop_.now() - request.asked});
  }
  if (is_over(mine->state)) {
    return refuse(host,
                  text("Slurm's job ", mine->job, ", which was to give a node, is over: ", printable(mine->word),
                       mine->reason.empty() || mine->reason == "None" ? "" : text(" (", printable(mine->reason), ")")));
  }
  // "None" is what Slurm says of a job that nobody has looked at yet.
  if (request.told == mine->reason || mine->reason == "None") return;
  request.told = mine->reason;
  handlers_.on_waiting(host, text("Slurm's job ", mine->job, " waits for a node: ", printable(mine->reason)));
}

// What was asked for this host before, and could not be given back then.
void NodeRequests::cancel_older(HostId host, const std::vector<RequestedJob>& jobs) {
  const RequestToken& now = requests_[host].token;
  for (const RequestedJob& job : jobs) {
    if (job.token.host != host || job.token == now || is_over(job.state)) continue;
    cancel(job.job);
  }
}

void NodeRequests::cancel(std::uint32_t job) {
  call(cancel_job_command(job, options_.environment), [job](const Result<std::string>& answer) {
    if (!answer.ok()) log_warn("giving back Slurm's job ", job, ": ", printable(answer.error().message));
  });
}

void NodeRequests::note_returning(HostId host, const std::vector<RequestedJob>& jobs) {
  Request& request = requests_[host];
  bool some = false;
  for (const RequestedJob& job : jobs) {
    if (job.token.host != host || is_over(job.state)) continue;
    some = true;
    cancel(job.job);
  }
  // What is being submitted is not in the list yet.
  if (some || request.submitting > 0) return;
  request.step = Step::kNone;
  for (const auto& then : std::exchange(request.on_returned, {})) then();
}

}  // namespace monarch
