#include "supervisor/doctor/run_checks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "supervisor/core/health/fair_deadline.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"

namespace monarch::doctor {

namespace {

constexpr std::size_t kAnswerBytes = 1U << 20U;

struct Running {
  pid_t child = -1;
  UniqueFd answer;
  std::string bytes;
  bool late = false;
};

[[noreturn]] void answer_and_leave(const Check& check, int fd) {
  Json all = Json::array();
  for (const Finding& finding : check.run()) all.append(finding_json(finding));
  const std::string bytes = to_json(all);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t wrote = ::write(fd, rest.data(), rest.size());
    if (wrote <= 0) break;  // nobody waits for it any more
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  ::_exit(0);
}

Running start(const Check& check) {
  Running running;
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return running;
  running.answer = UniqueFd(fds[0]);
  const UniqueFd write_end(fds[1]);
  running.child = ::fork();
  if (running.child == 0) answer_and_leave(check, write_end.get());
  return running;
}

// False once there is no more.
bool read_some(Running& running) {
  char buffer[16384];
  const ssize_t got = ::read(running.answer.get(), buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0 || running.bytes.size() > kAnswerBytes) return false;
  running.bytes.append(buffer, static_cast<std::size_t>(got));
  return true;
}

// How late this machine was meanwhile, in words; mostly nothing.
std::string collect(std::vector<Running>& all, FairDeadline deadline) {
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<Running*> owners;
    for (Running& running : all) {
      if (!running.answer.valid()) continue;
      polled.push_back({running.answer.get(), POLLIN, 0});
      owners.push_back(&running);
    }
    if (polled.empty()) return "";
    const Instant now = boot_now();
    if (deadline.over(now)) break;
    (void)::poll(polled.data(), polled.size(), EventLoop::wait_milliseconds(now, deadline.look_by(now)));
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0 && !read_some(*owners[i])) owners[i]->answer.reset();
    }
  }
  for (Running& running : all) {
    if (!running.answer.valid()) continue;
    running.late = true;
    (void)::kill(running.child, SIGKILL);  // our child, not reaped: the number is its own
  }
  return late_words(deadline.late());
}

Findings findings_of(const Check& check, const Running& running, const std::string& limit) {
  if (running.late) {
    return {{.check = check.name,
             .health = Health::kFailed,
             .found = text("no answer within ", limit),
             .means = "a file system or a device hangs; a job that touches it would hang too",
             .fix = "look for processes in state D (ps -eo pid,stat,wchan,args), and at dmesg"}};
  }
  int status = 0;
  if (running.child > 0) (void)::waitpid(running.child, &status, 0);  // it closed its pipe at its end
  const auto json = parse_json(running.bytes, {.bytes = kAnswerBytes});
  Findings findings;
  if (json.ok() && json->is_array()) {
    for (const Json& item : json->items()) {
      if (auto finding = parse_finding(item); finding.ok()) findings.push_back(std::move(*finding));
    }
    return findings;
  }
  return {{.check = check.name,
           .health = Health::kFailed,
           .found = running.child < 0 ? std::string("could not be started")
                                      : text("ended without an answer, status ", status),
           .means = "this is an error of monarch, or the machine is out of memory or processes",
           .fix = "try again; if it stays, report it"}};
}

}  // namespace

Findings run_checks(const std::vector<Check>& checks, Duration deadline) {
  std::vector<Running> all;
  all.reserve(checks.size());
  for (const Check& check : checks) all.push_back(start(check));
  const std::string limit = text(to_text(deadline), collect(all, FairDeadline(deadline, boot_now())));
  Findings findings;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    for (Finding& finding : findings_of(checks[i], all[i], limit)) findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace monarch::doctor
