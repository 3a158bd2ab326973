#include "worker/keeper/mesh_setup.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/base/text.h"
#include "worker/keeper/setup_shell.h"

namespace monarch {

namespace {

enum class Stage : std::uint32_t { kNever, kDone, kFailed };

// At the beginning of the memory; what was exported follows, each line with a final zero. Written last.
struct Head {
  Stage stage = Stage::kNever;
  std::int32_t exit_code = 0;
  std::uint64_t bytes = 0;
  std::uint64_t term = 0;
  std::uint64_t counter = 0;
  std::uint32_t rank = 0;  // that ran it
};

bool write_at(int fd, const void* data, std::size_t size, std::size_t offset) {
  const char* bytes = static_cast<const char*>(data);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t put = ::pwrite(fd, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

bool read_at(int fd, void* data, std::size_t size, std::size_t offset) {
  char* bytes = static_cast<char*>(data);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool lock(int fd, short type) {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  for (;;) {
    if (::fcntl(fd, F_SETLKW, &whole) == 0) return true;
    if (errno != EINTR) return false;
  }
}

Head read_head(int fd) {
  Head head;
  return read_at(fd, &head, sizeof head, 0) ? head : Head{};
}

std::optional<StepFailure> take_lines(int fd, std::uint64_t bytes, std::vector<std::string>& lines) {
  std::string all(bytes, '\0');
  if (!read_at(fd, all.data(), all.size(), sizeof(Head))) return StepFailure{errno, "read what `setup` exported"};
  lines.clear();
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t end = std::min(all.find('\0', from), all.size());
    lines.push_back(all.substr(from, end - from));
    from = end + 1;
  }
  return std::nullopt;
}

bool store(int fd, Head head, const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all.append(line).push_back('\0');
  head.bytes = all.size();
  return write_at(fd, all.data(), all.size(), sizeof head) && write_at(fd, &head, sizeof head, 0);
}

}  // namespace

Result<std::unique_ptr<MeshSetup>> MeshSetup::create() {
  UniqueFd memory(::memfd_create("monarch-setup", MFD_CLOEXEC));
  if (!memory.valid()) return errno_error("making memory for the environment of `setup`", errno);
  return std::unique_ptr<MeshSetup>(new MeshSetup(std::move(memory)));
}

std::optional<StepFailure> MeshSetup::apply(const std::string& setup, const Incarnation& process,
                                            std::vector<std::string>& environment) const {
  const auto& [rank, generation] = process;
  const int fd = memory_.get();
  if (!lock(fd, F_WRLCK)) return StepFailure{errno, "wait for `setup`"};
  Head head = read_head(fd);
  const bool failed = head.stage == Stage::kFailed && generation <= Generation{Term(head.term), head.counter};
  if (failed) {
    (void)lock(fd, F_UNLCK);  // it goes with this process at the latest
    return StepFailure{0, text("`setup`, which rank ", head.rank, " ran"), head.exit_code};
  }
  if (head.stage == Stage::kDone) {
    auto failure = take_lines(fd, head.bytes, environment);
    (void)lock(fd, F_UNLCK);
    return failure;
  }
  auto outcome = run_setup(setup, environment);
  head = {Stage::kDone, 0, 0, generation.term.value(), generation.counter, rank.rank.value()};
  if (auto* failure = std::get_if<StepFailure>(&outcome)) {
    // What kept bash from running may be better for the next one.
    if (failure->exit_code == 0) return *failure;
    head.stage = Stage::kFailed;
    head.exit_code = failure->exit_code;
    (void)store(fd, head, {});  // if not, the next one runs it again
    return *failure;            // still locked: others hear of it after this process has told and ended
  }
  environment = std::move(std::get<std::vector<std::string>>(outcome));
  if (!store(fd, head, environment)) return StepFailure{errno, "keep what `setup` exported"};
  (void)lock(fd, F_UNLCK);
  return std::nullopt;
}

}  // namespace monarch
