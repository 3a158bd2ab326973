#include "supervisor/launch/ssh/session/resolve.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "transport/loop/inbox.h"

namespace monarch {

namespace {

// Of the whole process, those included that nobody waits for any more.
constexpr int kMostThreads = 512;

struct Answer {
  int error = 0;
  int system = 0;  // errno, where the error is EAI_SYSTEM
  Addresses found{nullptr, ::freeaddrinfo};
};
using Answers = std::shared_ptr<Inbox<Answer>>;  // owners: who asked, and the thread that was left to itself

// The threads outlive whoever asks, so nobody who ends before the process can count them.
std::atomic<int>& threads() {
  static std::atomic<int> count{0};
  return count;
}

DialFailure failure_of(const SshTarget& target, const std::string& answer) {
  return {LaunchFailureKind::kName, text("looking up ", target.address, ": ", answer)};
}

Answer answer_of(const LookUp& ask, const std::string& name, const std::string& port) {
  addrinfo* found = nullptr;
  Answer answer;
  answer.error = ask(name, port, &found);
  answer.system = errno;
  if (answer.error == 0) answer.found.reset(found);
  return answer;
}

Status start(const SshTarget& target, const LookUp& ask, const Answers& answers) {
  if (threads().fetch_add(1) >= kMostThreads) {
    --threads();
    return Error{ErrorCode::kBusy,
                 text("the resolver has not answered ", kMostThreads, " times: it is not asked again")};
  }
  try {
    std::thread([ask, answers, name = target.address, port = std::to_string(target.port)] {
      (void)answers->put(answer_of(ask, name, port));  // it has room for the one
      --threads();
    }).detach();
  } catch (const std::system_error& error) {
    --threads();
    return thread_error(error.code().value());
  }
  return {};
}

}  // namespace

int look_up(const std::string& name, const std::string& port, addrinfo** found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  return ::getaddrinfo(name.c_str(), port.c_str(), &hints, found);
}

std::variant<Addresses, DialFailure> resolve(const SshTarget& target, const Patience& patience, const LookUp& ask) {
  // A number needs no resolver.
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* number = nullptr;
  if (::getaddrinfo(target.address.c_str(), std::to_string(target.port).c_str(), &hints, &number) == 0) {
    return Addresses(number, ::freeaddrinfo);
  }
  auto inbox = Inbox<Answer>::create(1);
  if (!inbox.ok()) return failure_of(target, inbox.error().message);
  const Answers answers = std::move(*inbox);
  if (const Status started = start(target, ask, answers); !started) return failure_of(target, started.error().message);
  switch (wait_for(answers->descriptor(), POLLIN, patience)) {
    case WaitEnd::kReady: break;
    case WaitEnd::kCancelled:
      return DialFailure{LaunchFailureKind::kOther, text("looking up ", target.address, ": cancelled")};
    case WaitEnd::kTimeout:
      return failure_of(target,
                        text("the resolver did not answer within ", to_text(target.connect_timeout), patience.late()));
  }
  for (Answer& answer : answers->take_all()) {
    if (answer.error == 0) return std::move(answer.found);
    return failure_of(target, answer.error == EAI_SYSTEM ? errno_error("the resolver", answer.system).message
                                                         : std::string(::gai_strerror(answer.error)));
  }
  return failure_of(target, "no answer");
}

}  // namespace monarch
