#include "worker/errand/step_main.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/marks.h"
#include "transport/base/result.h"
#include "transport/base/step_lines.h"
#include "transport/base/text.h"
#include "transport/process/pipe.h"
#include "transport/wire/frame.h"
#include "transport/wire/sealed_memory.h"
#include "worker/errand/print.h"

namespace monarch {

namespace {

// Who is ready is answered at once; where nobody does, the supervisor is gone, and who looks for workers here is not to
// wait for this one.
constexpr Duration kOrderWithin = Duration::seconds(60);
constexpr std::size_t kFrameBytes = kFrameHeaderBytes + limits::kControlPayloadBytes;
constexpr std::size_t kAnswerBytes = 64U << 10U;  // as the launcher takes

// What all processes of the step read has no end before each has its own.
Result<std::string> read_own_frame(const std::string& node) {
  StepBytes own(kFrameBytes);
  std::string bytes;
  const Instant until = boot_now() + kOrderWithin;
  for (;;) {
    for (std::size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n')) {
      StepLine line;
      const bool ours = read_step_line(std::string_view(bytes).substr(0, end), line) && line.node == node;
      const auto sight = ours ? own.add(line.rest) : StepBytes::Sight::kOther;
      if (sight == StepBytes::Sight::kWhole) return own.bytes();
      if (sight == StepBytes::Sight::kBroken) {
        return Error{ErrorCode::kInvalid, "the bootstrap of this node cannot be read"};
      }
      bytes.erase(0, end + 1);
    }
    if (bytes.size() > kStepLineBytes) return Error{ErrorCode::kInvalid, "a line of the step is too long"};
    pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max(until - boot_now(), Duration()).count_milliseconds()));
    if (ready == 0)
      return Error{ErrorCode::kTimeout, text("no bootstrap for this node within ", to_text(kOrderWithin))};
    std::array<char, 4096> buffer;
    const ssize_t got = ready < 0 ? -1 : ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("reading the step's input", errno);
    if (got == 0) return Error{ErrorCode::kGone, "the step's input ended without a bootstrap for this node"};
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// Until the keeper and its daemon have answered and closed their ends.
[[noreturn]] void carry_answer(int from, const std::string& node) {
  std::string bytes;
  std::array<char, 4096> buffer;
  while (bytes.size() <= kAnswerBytes) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
  print(STDOUT_FILENO, step_lines(node, bytes));
  ::_exit(0);
}

// Standard output of what is executed next: who carries it is nobody's child, for the keeper waits for its own alone.
Status answer_by_lines(const std::string& node) {
  MONARCH_ASSIGN(Pipe pipe, make_pipe(PipeReader::kWaits));
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork", errno);
  if (child == 0) {
    if (::fork() != 0) ::_exit(0);
    pipe.writer.reset();
    (void)::close(STDIN_FILENO);
    carry_answer(pipe.reader.get(), node);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (::dup2(pipe.writer.get(), STDOUT_FILENO) < 0) return errno_error("dup2", errno);
  return {};
}

Status become_worker(const std::vector<std::string>& arguments) {
  const std::string& node = arguments[3];
  print(STDOUT_FILENO, text('@', node, " ready\n"));
  MONARCH_ASSIGN(const std::string frame, read_own_frame(node));
  MONARCH_ASSIGN(const UniqueFd input, make_sealed_memory("bootstrap", frame));
  MONARCH_TRY(answer_by_lines(node));
  if (::lseek(input.get(), 0, SEEK_SET) != 0 || ::dup2(input.get(), STDIN_FILENO) < 0) {
    return errno_error("handing on the bootstrap", errno);
  }
  std::vector<std::string> words = {"monarch-worker"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  (void)::execv("/proc/self/exe", pointers.data());
  return errno_error("executing the worker", errno);
}

}  // namespace

int step_main(const std::vector<std::string>& arguments) {
  std::string why = "usage: monarch-worker step --job UUID --host NAME";
  const bool marked = arguments.size() == 4 && arguments[0] == kJobArgument && arguments[2] == kHostArgument;
  if (marked) why = become_worker(arguments).error().message;
  why += '\n';
  (void)!::write(STDERR_FILENO, why.data(), why.size());  // who does not read it sees the exit code
  return marked ? kExitInternal : kExitUsage;
}

}  // namespace monarch
