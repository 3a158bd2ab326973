#include "supervisor/workers/verdict.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kLastLines = 20;
// Of an exception's first line: the verdict has to fit into a record of the journal.
constexpr std::size_t kMessageBytes = 4'096;
// Of an error file: the message and all stacks of a traceback. Of a larger one nothing is told.
constexpr std::size_t kErrorFileBytes = 1U << 20U;

// The end of a regular file of ours, at most `limit` bytes; empty if there is none.
std::string end_of_file(const std::string& path, std::size_t limit) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto size = static_cast<std::size_t>(status.st_size);
  std::string bytes(std::min(size, limit), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n =
        ::pread(file.get(), bytes.data() + have, bytes.size() - have, static_cast<off_t>(size - bytes.size() + have));
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

// {"message": {"message": "ValueError: …", …}} or {"message": "…"}, as torch.distributed.elastic writes it.
std::string message_of_error_file(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed.ok()) return {};
  const Json* message = parsed->find("message");
  if (message == nullptr) return {};
  if (const Json* inner = message->find("message"); inner != nullptr) message = inner;
  return message->as_string().value_or("");
}

}  // namespace

std::string last_lines(std::string_view text, std::size_t lines) {
  std::size_t from = text.size();
  if (from > 0 && text[from - 1] == '\n') --from;
  for (std::size_t seen = 0; from > 0; --from) {
    if (text[from - 1] == '\n' && ++seen == lines) break;
  }
  return std::string(text.substr(from));
}

void add_last_words(const std::string& log_directory, const UnkeptTail& unkept, std::uint64_t written,
                    FirstCause& cause) {
  if (cause.kind != CauseKind::kRank || !cause.rank) return;
  const std::string stem = text(log_directory, "/", cause.mesh, "/", *cause.rank, ".", cause.generation);
  std::string tail = end_of_file(stem + ".err", limits::kTailBytes);
  const std::uint64_t behind = written > unkept.at ? written - unkept.at : 0;
  if (behind <= tail.size()) tail.insert(tail.size() - static_cast<std::size_t>(behind), unkept.bytes);
  if (tail.size() > limits::kTailBytes) tail.erase(0, tail.size() - limits::kTailBytes);
  cause.stderr_tail = last_lines(tail, kLastLines);
  const std::string told = message_of_error_file(end_of_file(stem + ".error.json", kErrorFileBytes));
  if (!told.empty()) cause.summary += text(": ", printable(told.substr(0, std::min(told.find('\n'), kMessageBytes))));
}

}  // namespace monarch
