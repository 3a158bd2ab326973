#include "transport/wire/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/text.h"
#include "transport/wire/file_size_signal.h"

namespace monarch {

namespace {

constexpr int kContentSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

Result<UniqueFd> make_sealed_memory(const char* name, std::string_view bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errno_error("memfd_create", errno);
  const FileSizeSignal refused_by_its_error;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(text("writing ", bytes.size(), " bytes into a memfd"), errno);
    done += static_cast<std::size_t>(written);
  }
  MONARCH_TRY(seal_memory(fd.get()));
  return fd;
}

Status seal_memory(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, kContentSeals | F_SEAL_SEAL) != 0) return errno_error("sealing a memfd", errno);
  return {};
}

Result<std::uint64_t> sealed_memory_size(int fd) { return memory_size(fd, kContentSeals); }

Result<std::uint64_t> memory_size(int fd, int wanted) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & wanted) != wanted) {
    return Error{ErrorCode::kInvalid,
                 "the descriptor is no memfd that is sealed against writing, growing and shrinking"};
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_error("fstat of sealed memory", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::string> read_sealed_memory(int fd, std::size_t size) {
  MONARCH_ASSIGN(const std::uint64_t found, sealed_memory_size(fd));
  if (found != size) {
    return Error{ErrorCode::kInvalid, text("sealed memory of ", found, " bytes was announced as ", size)};
  }
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("reading sealed memory", errno);
    if (got == 0) return Error{ErrorCode::kInvalid, "sealed memory ended early"};
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace monarch
