#include "worker/drill/strike.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/process/job_marks.h"
#include "transport/process/process_scan.h"
#include "transport/process/spawn.h"
#include "worker/core/strike_plan.h"

namespace monarch {

namespace {

constexpr Duration kLook = Duration::milliseconds(5);
constexpr std::uint32_t kMostProcesses = 4'096;
constexpr int kGuardTries = 20;
constexpr Duration kGuardPause = Duration::milliseconds(200);

bool until(const std::function<bool()>& holds, Duration patience) {
  for (const Instant end = boot_now() + patience; !holds();) {
    if (boot_now() >= end) return false;
    (void)::poll(nullptr, 0, static_cast<int>(kLook.count_milliseconds()));
  }
  return true;
}

bool is_stopped(const ProcessEntry& known) {
  const auto now = read_process(known.pid);
  return now && now->start == known.start && (now->state == 'T' || now->state == 't');
}

bool is_gone(const ProcessEntry& known) {
  const auto now = read_process(known.pid);
  return !now || now->start != known.start || now->dead();
}

std::vector<StrikeCandidate> candidates_of(const std::vector<ProcessEntry>& there, const std::string& uuid) {
  std::vector<pid_t> keepers;
  std::vector<StrikeCandidate> all;
  for (const ProcessEntry& entry : there) {
    const auto worker = worker_mark(entry.pid);
    if (worker && worker->uuid == uuid && worker->keeper) keepers.push_back(entry.pid);
  }
  for (const ProcessEntry& entry : there) {
    StrikeCandidate one{.pid = entry.pid};
    const auto worker = worker_mark(entry.pid);
    const bool of_keeper = std::find(keepers.begin(), keepers.end(), entry.parent) != keepers.end();
    if (worker && worker->uuid == uuid) {
      one.role = worker->keeper ? StrikeRole::kKeeper : StrikeRole::kDaemon;
    } else if (of_keeper) {
      const auto mesh = environment_value(entry.pid, "MONARCH_MESH");
      const auto rank = environment_value(entry.pid, "MONARCH_RANK");
      if (mesh && rank) {
        one.role = StrikeRole::kRank;
        one.mesh = *mesh;
        one.rank = static_cast<std::uint32_t>(std::strtoul(rank->c_str(), nullptr, 10));
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

// nft(8), with `script` as its input; what it said where it fails.
Status run_nft(const std::vector<const char*>& arguments, std::string_view script) {
  int input[2];
  int words[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  UniqueFd read_end(input[0]);
  UniqueFd write_end(input[1]);
  if (::pipe2(words, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  UniqueFd heard(words[0]);
  UniqueFd said(words[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork", errno);
  if (child == 0) {
    std::vector<char*> argv{const_cast<char*>("nft")};
    for (const char* argument : arguments) argv.push_back(const_cast<char*>(argument));
    argv.push_back(nullptr);
    (void)::dup2(read_end.get(), STDIN_FILENO);
    (void)::dup2(said.get(), STDERR_FILENO);
    (void)::dup2(said.get(), STDOUT_FILENO);
    for (const char* path : {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"}) ::execv(path, argv.data());
    ::_exit(kExitNotFound);
  }
  read_end.reset();
  said.reset();
  while (!script.empty()) {
    const ssize_t wrote = ::write(write_end.get(), script.data(), script.size());
    if (wrote <= 0) break;  // it tells why by its status
    script.remove_prefix(static_cast<std::size_t>(wrote));
  }
  write_end.reset();
  std::string answer;
  char buffer[1'024];
  for (ssize_t got = 0; (got = ::read(heard.get(), buffer, sizeof buffer)) > 0;) {
    if (answer.size() < 4'096) answer.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNotFound)
    return Error{ErrorCode::kUnsupported, "there is no nft (nftables)"};
  return Error{ErrorCode::kUnsupported, text("nft: ", printable(answer.substr(0, 300)))};
}

}  // namespace

Result<std::unique_ptr<Strike>> Strike::begin(const StrikeOrder& order, Duration patience) {
  if (!is_job_uuid(order.job_uuid)) return Error{ErrorCode::kInvalid, "that is not the uuid of a job"};
  std::unique_ptr<Strike> strike(new Strike());
  strike->struck_at_ = wall_now();
  switch (order.what) {
    case StrikeWhat::kBusy: MONARCH_TRY(strike->keep_busy(order.processes)); break;
    case StrikeWhat::kCut: MONARCH_TRY(strike->cut(order)); break;
    case StrikeWhat::kNoFiles:
    case StrikeWhat::kNoMemory: MONARCH_TRY(strike->lower(order)); break;
    case StrikeWhat::kKill:
    case StrikeWhat::kTerm:
    case StrikeWhat::kSegv:
    case StrikeWhat::kAbort:
    case StrikeWhat::kStop: MONARCH_TRY(strike->hit(order, patience)); break;
    case StrikeWhat::kSlow:
    case StrikeWhat::kFlood:
    case StrikeWhat::kReset:
    case StrikeWhat::kMemoryPressure: return Error{ErrorCode::kUnsupported, "this worker cannot strike so"};
  }
  strike->seen_at_ = wall_now();
  return strike;
}

Status Strike::hit(const StrikeOrder& order, Duration patience) {
  const std::vector<ProcessEntry> there = processes_of_job({.uuid = order.job_uuid, .host = order.host});
  MONARCH_ASSIGN(const std::vector<Blow> blows, plan_strike(order, candidates_of(there, order.job_uuid)));
  std::vector<std::pair<ProcessEntry, UniqueFd>> targets;
  for (const Blow& blow : blows) {
    const auto entry =
        std::find_if(there.begin(), there.end(), [&](const ProcessEntry& e) { return e.pid == blow.pid; });
    UniqueFd pidfd = open_process(*entry);
    if (pidfd.valid()) targets.emplace_back(*entry, std::move(pidfd));
  }
  if (targets.empty()) return Error{ErrorCode::kNotFound, "it had ended before it was struck"};
  const bool stops = order.what == StrikeWhat::kStop;
  if (stops) {
    for (auto& [entry, pidfd] : targets) stopped_.emplace_back(::fcntl(pidfd.get(), F_DUPFD_CLOEXEC, 0));
    MONARCH_TRY(guard());
  }
  struck_at_ = wall_now();
  for (auto& [entry, pidfd] : targets) (void)send_signal(pidfd.get(), blows.front().signal);  // looked at below
  const auto hit = [&] {
    return std::all_of(targets.begin(), targets.end(), [&](const auto& target) {
      return stops ? is_stopped(target.first) || is_gone(target.first) : is_gone(target.first);
    });
  };
  const bool all = until(hit, patience);
  for (const auto& [entry, pidfd] : targets) {
    if (stops ? is_stopped(entry) : is_gone(entry)) struck_.push_back(entry.pid);
  }
  if (all && !struck_.empty()) return {};
  return Error{ErrorCode::kTimeout,
               text("of ", targets.size(), " processes ", struck_.size(), " were struck within ", to_text(patience))};
}

// Of each of these and of all that they have started.
Status Strike::lower(const StrikeOrder& order) {
  const std::vector<ProcessEntry> there = processes_of_job({.uuid = order.job_uuid, .host = order.host});
  MONARCH_ASSIGN(const std::vector<Blow> blows, plan_strike(order, candidates_of(there, order.job_uuid)));
  std::vector<pid_t> meant;
  for (const Blow& blow : blows) meant.push_back(blow.pid);
  for (std::size_t i = 0; i < meant.size(); ++i) {
    for (const ProcessEntry& entry : there) {
      const bool is_new = std::find(meant.begin(), meant.end(), entry.pid) == meant.end();
      if (entry.parent == meant[i] && is_new) meant.push_back(entry.pid);
    }
  }
  Status planned;
  for (const ProcessEntry& entry : there) {
    if (std::find(meant.begin(), meant.end(), entry.pid) == meant.end()) continue;
    if (const Status done = limits_.plan(entry, order.what); !done.ok()) planned = done;
  }
  MONARCH_TRY(guard());
  struck_at_ = wall_now();
  struck_ = limits_.lower();
  if (!struck_.empty()) return {};
  return planned.ok() ? Status(Error{ErrorCode::kTimeout, "no limit is what it was set to"}) : planned;
}

Status Strike::keep_busy(std::uint32_t processes) {
  if (processes == 0 || processes > kMostProcesses) {
    return Error{ErrorCode::kInvalid, text("1 to ", kMostProcesses, " processes keep a host busy")};
  }
  // They begin with the end of this pipe, or end with a byte of it: whom nobody could signal is not to spin.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t self = ::getpid();
  int error = 0;
  for (std::uint32_t i = 0; i < processes && error == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      (void)::prctl(PR_SET_NAME, "monarch-drill");
      (void)::setsid();  // in a scheduling group of its own, as those of another user would be
      write_end.reset();
      char word = 0;
      if (::getppid() != self || ::read(read_end.get(), &word, 1) != 0) ::_exit(0);
      for (volatile std::uint64_t spins = 0;;) spins = spins + 1;
    }
    if (child < 0) {
      error = errno;
      break;
    }
    const auto entry = read_process(child);
    busy_.emplace_back(child, entry ? open_process(*entry) : UniqueFd());
    struck_.push_back(child);
    if (!busy_.back().second.valid()) error = EMFILE;
  }
  if (error == 0) return {};
  for (std::size_t i = 0; i < busy_.size(); ++i) (void)!::write(write_end.get(), "x", 1);  // a pipe holds that many
  for (const auto& [child, pidfd] : busy_) (void)::waitpid(child, nullptr, 0);
  busy_.clear();
  struck_.clear();
  return errno_error(text("starting ", processes, " processes"), error);
}

Status Strike::cut(const StrikeOrder& order) {
  const std::string table = text("monarch_drill_", ::getpid());
  MONARCH_ASSIGN(const std::string script, cut_script(order, table));
  table_ = table;
  MONARCH_TRY(guard());
  return run_nft({"-f", "-"}, script);
}

// A child that lives as long as this process, and then undoes what it did not.
Status Strike::guard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork", errno);
  if (child > 0) {
    alive_ = std::move(write_end);
    guard_ = child;
    return {};
  }
  write_end.reset();
  (void)::setsid();  // what ends the session of its parent does not end it
  // Or whoever reads what this process says would wait for it.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(null.get(), fd);
  char word = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &word, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) ::_exit(0);
  for (const UniqueFd& pidfd : stopped_) (void)send_signal(pidfd.get(), SIGCONT);
  (void)limits_.restore();
  for (int tries = 0; !table_.empty() && tries < kGuardTries; ++tries) {
    if (run_nft({"delete", "table", "inet", table_.c_str()}, "").ok()) break;
    (void)::poll(nullptr, 0, static_cast<int>(kGuardPause.count_milliseconds()));
  }
  ::_exit(0);
}

Status Strike::undo(Duration patience) {
  Status undone;
  for (const auto& [child, pidfd] : busy_) (void)send_signal(pidfd.get(), SIGKILL);
  for (const auto& [child, pidfd] : busy_) (void)::waitpid(child, nullptr, 0);
  busy_.clear();
  // Those that were told last go on first: the keeper is to see everything as it was.
  for (auto each = stopped_.rbegin(); each != stopped_.rend(); ++each) (void)send_signal(each->get(), SIGCONT);
  if (!std::exchange(stopped_, {}).empty()) {
    const auto go_on = [this] {
      return std::none_of(struck_.begin(), struck_.end(), [](pid_t pid) {
        const auto now = read_process(pid);
        return now && (now->state == 'T' || now->state == 't');
      });
    };
    if (!until(go_on, patience))
      undone = Error{ErrorCode::kTimeout, "what was stopped does not go on: somebody else holds it"};
  }
  if (const Status restored = limits_.restore(); !restored.ok()) undone = restored;
  if (const std::string table = std::exchange(table_, {}); !table.empty()) {
    const Status deleted = run_nft({"delete", "table", "inet", table.c_str()}, "");
    if (!deleted.ok()) undone = deleted;
  }
  if (guard_ > 0) {
    // It may have been killed, which is well now; where something could not be taken back, it tries that, too.
    if (undone.ok()) (void)!::write(alive_.get(), "x", 1);
    alive_.reset();
    (void)::waitpid(std::exchange(guard_, 0), nullptr, 0);
  }
  return undone;
}

}  // namespace monarch
