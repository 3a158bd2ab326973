#include "worker/keeper/stack_taker.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

#include "transport/base/files/open_below.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/process/read_small.h"

namespace monarch {

namespace {

constexpr std::size_t kWaiting = 1'024;  // questions; one more is answered kBusy
constexpr Duration kLongestPatience = Duration::seconds(600);
constexpr std::string_view kYamaFile = "/proc/sys/kernel/yama/ptrace_scope";

// The name alone: neither its file nor the process's memory is touched, which may be where it hangs.
std::string executable_of(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink(text("/proc/", pid, "/exe").c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

std::string state_of(const ProcessEntry& process) {
  if (process.state != 'D') return {process.state};
  const auto where = read_small(text("/proc/", process.pid, "/wchan"));
  return where && !where->empty() && *where != "0" ? text("D in ", printable(*where)) : "D";
}

bool stands(char state) { return state == 'T' || state == 't'; }

// The rank's own process first, then those that came of it, the oldest first.
std::deque<ProcessEntry> processes_of(pid_t leader) {
  auto found = with_descendants(
      list_processes(), [leader](const ProcessEntry& entry) { return entry.pid == leader || entry.session == leader; });
  std::sort(found.begin(), found.end(), [leader](const ProcessEntry& a, const ProcessEntry& b) {
    if ((a.pid == leader) != (b.pid == leader)) return a.pid == leader;
    return std::pair(a.start, a.pid) < std::pair(b.start, b.pid);
  });
  return {found.begin(), found.end()};
}

bool is_still_there(const ProcessEntry& process) {
  const auto now = read_process(process.pid);
  return now && now->start == process.start && !now->dead();
}

// A debugger stops what it looks at by SIGSTOP. Killed before it has seen that stop, it leaves the signal to take
// effect (ptrace(2)).
void wake(const ProcessEntry& process) {
  const UniqueFd pidfd = open_process(process);
  if (pidfd.valid()) (void)send_signal(pidfd.get(), SIGCONT);  // false: it has ended
}

std::string with_yama(std::string words) {
  const auto scope = read_small(std::string(kYamaFile));
  return scope ? text(words, words.empty() ? "" : "; ", "kernel.yama.ptrace_scope is ", *scope) : words;
}

}  // namespace

StackTaker::StackTaker(EventLoop& loop, ChildWatch& watch, const Environment& base, StackTakerHandlers handlers)
    : loop_(loop),
      watch_(watch),
      environment_(environment_lines(stack_environment(base))),
      handlers_(std::move(handlers)) {}

StackTaker::~StackTaker() { loop_.cancel(timer_); }

void StackTaker::take(const TakeStacks& order) {
  Look look;
  look.key = order.process;
  look.order = order;
  look.order.limit = std::clamp(order.limit, Duration::zero(), limits::kLongestStackLimit);
  look.give_up = loop_.now() + std::clamp(order.patience, Duration::zero(), kLongestPatience);
  look.stacks.number = order.number;
  if (waiting_.size() >= kWaiting) {
    return refuse(look, StacksEnd::kBusy, text("more than ", kWaiting, " were asked for at once"));
  }
  waiting_.push_back(std::move(look));
  begin_waiting();
}

void StackTaker::begin_waiting() {
  Instant next = Instant::never();
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    if (loop_.now() >= each->give_up) {
      refuse(*each, StacksEnd::kBusy, text("others were before it, and its turn did not come in time"));
    } else if (looks_.size() < limits::kStacksAtOnce && !is_looked_at(each->key)) {
      looks_.push_back(std::move(*each));
      begin(looks_.back());
    } else {
      next = std::min(next, each->give_up);
      ++each;
      continue;
    }
    each = waiting_.erase(each);
  }
  loop_.cancel(std::exchange(timer_, 0));
  if (next == Instant::never()) return;
  timer_ = loop_.at(next, [this] {
    timer_ = 0;
    begin_waiting();
  });
}

bool StackTaker::is_looked_at(const Incarnation& key) const {
  return std::any_of(looks_.begin(), looks_.end(), [&key](const Look& look) { return look.key == key; });
}

void StackTaker::begin(Look& look) {
  look.deadline = std::min(loop_.now() + look.order.limit, look.give_up);
  look.bytes_left = limits::kStacksBytes;
  const auto leader = handlers_.leader(look.key);
  if (const auto* none = std::get_if<StacksEnd>(&leader)) {
    look.stacks.end = *none;
    return answer(look);
  }
  look.left = processes_of(std::get<pid_t>(leader));
  if (look.left.empty()) look.stacks.end = StacksEnd::kEnded;  // nothing but zombies
  if (look.left.size() > limits::kStackProcesses) {
    look.stacks.untold_processes = static_cast<std::uint32_t>(look.left.size() - limits::kStackProcesses);
    look.left.resize(limits::kStackProcesses);
  }
  go_on(look);
}

void StackTaker::go_on(Look& look) {
  if (look.left.empty()) return answer(look);
  look.process = look.left.front();
  look.left.pop_front();
  look.target = {.pid = look.process.pid, .executable = executable_of(look.process.pid), .state = look.process.state};
  const std::vector<StackTool> tools = stack_tools_for(look.target);
  look.untried = {tools.begin(), tools.end()};
  look.tried.clear();
  try_next_tool(look);
}

void StackTaker::try_next_tool(Look& look) {
  look.heard = {};
  if (look.untried.empty()) {
    const StacksEnd end = look.tried.empty() ? StacksEnd::kNoTool : StacksEnd::kFailed;
    return put(look, StackTool::kNone, {end, look.tried});
  }
  const StackWish wish{.all_threads = look.order.all_threads, .native = look.order.native};
  ToolOrder order{.program = stack_command(look.untried.front(), look.target, wish),
                  .environment = environment_,
                  .deadline = look.deadline,
                  .output_bytes = look.bytes_left};
  // A list's elements stay where they are; this one until its run has gone.
  ToolRun::Handlers handlers{.on_end = [this, &look](ToolEnd end) { on_end(look, std::move(end)); },
                             .on_gone = [this, &look] { loop_.defer(scope_.guard([this, &look] { on_gone(look); })); }};
  auto run = ToolRun::start(loop_, watch_, std::move(order), std::move(handlers));
  if (!run.ok()) return put(look, look.untried.front(), {StacksEnd::kFailed, run.error().message});
  look.run = std::move(*run);
}

// What came of a run that ended by itself waits until nothing of it is left; who asked does not wait for one that is
// being killed.
void StackTaker::on_end(Look& look, ToolEnd end) {
  look.heard = std::move(end);
  if (look.heard.how != ToolEnd::How::kTimedOut) return;
  look.stacks.untold_processes += static_cast<std::uint32_t>(look.left.size());
  look.left.clear();
  put(look, look.untried.front(),
      {StacksEnd::kTimedOut, look.abandoned ? "it was about to be killed"
                                            : text(stack_program(look.untried.front()), " was not done within ",
                                                   to_text(look.order.limit), " and was killed")});
}

void StackTaker::on_gone(Look& look) {
  look.run.reset();
  const bool killed = look.heard.how == ToolEnd::How::kTimedOut;
  const bool stood = look.stopped.value_or(stands(look.process.state));
  if ((killed || look.heard.status.signaled) && !stood) wake(look.process);
  if (look.answered) return sweep();
  take_in(look);
}

void StackTaker::take_in(Look& look) {
  const StackTool tool = look.untried.front();
  if (look.heard.how == ToolEnd::How::kNotExecuted) {
    const StepFailure& failure = look.heard.failure;
    if (failure.error != ENOENT) look.tried = errno_error(failure.detail, failure.error).message;
    look.untried.pop_front();
    return try_next_tool(look);
  }
  const ExitStatus& status = look.heard.status;
  StackVerdict verdict = judge(
      tool,
      {.signaled = status.signaled, .value = status.value, .output = look.heard.output, .error = look.heard.error});
  if (verdict.end != StacksEnd::kTaken && !is_still_there(look.process)) verdict = {StacksEnd::kEnded, ""};
  if (verdict.end == StacksEnd::kFailed && look.untried.size() > 1 && loop_.now() < look.deadline) {
    look.tried = verdict.detail;
    look.untried.pop_front();
    return try_next_tool(look);
  }
  if (verdict.end == StacksEnd::kRefused) verdict.detail = with_yama(std::move(verdict.detail));
  put(look, tool, std::move(verdict));
}

void StackTaker::put(Look& look, StackTool tool, StackVerdict verdict) {
  const bool shown = verdict.end == StacksEnd::kTaken || verdict.end == StacksEnd::kTimedOut;
  ProcessStacks stacks{.pid = look.process.pid,
                       .name = last_part(look.target.executable),
                       .state = state_of(look.process),
                       .tool = tool,
                       .end = verdict.end,
                       .detail = std::move(verdict.detail),
                       .output = shown ? std::exchange(look.heard.output, {}) : std::string(),
                       .cut = shown && look.heard.cut};
  look.bytes_left -= std::min(look.bytes_left, stacks.output.size());
  look.stacks.processes.push_back(std::move(stacks));
  go_on(look);
}

void StackTaker::answer(Look& look) {
  look.answered = true;
  if (!look.run) {
    loop_.defer(scope_.guard([this] { sweep(); }));
  }
  handlers_.answer(look.key, std::move(look.stacks));
}

void StackTaker::refuse(const Look& look, StacksEnd end, std::string detail) {
  Stacks stacks;
  stacks.number = look.order.number;
  stacks.end = end;
  stacks.detail = std::move(detail);
  handlers_.answer(look.key, std::move(stacks));
}

void StackTaker::abandon(const Incarnation& key) {
  for (Look& look : looks_) {
    if (look.key != key || look.answered || !look.run) continue;
    look.abandoned = true;
    look.run->kill();
  }
}

void StackTaker::leave(const Incarnation& key, bool stopped) {
  for (Look& look : looks_) {
    if (look.key == key) look.stopped = stopped;
  }
}

bool StackTaker::is_ours(pid_t tracer) const {
  return std::any_of(looks_.begin(), looks_.end(),
                     [tracer](const Look& look) { return look.run && look.run->is(tracer); });
}

void StackTaker::sweep() {
  looks_.remove_if([](const Look& look) { return look.answered && !look.run; });
  begin_waiting();
}

}  // namespace monarch
