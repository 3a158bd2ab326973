#include "worker/vault/vault_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/text.h"
#include "transport/wire/sealed_memory.h"

namespace monarch::vault {

Status VaultMemory::create(BlobId blob, std::uint64_t bytes) {
  UniqueFd fd(::memfd_create("monarch-checkpoint", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errno_error("memfd_create", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return errno_error(text("memory for a checkpoint of ", amount_text(bytes)), errno);
  }
  blobs_[blob] = std::move(fd);
  return {};
}

Status VaultMemory::write(BlobId blob, std::uint64_t offset, std::string_view bytes) {
  MONARCH_ASSIGN(const int fd, descriptor(blob));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error("writing a piece of a checkpoint into memory", n < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Status VaultMemory::seal(BlobId blob) {
  MONARCH_ASSIGN(const int fd, descriptor(blob));
  return seal_memory(fd);
}

Result<std::string> VaultMemory::read(BlobId blob, std::uint64_t offset, std::size_t length) const {
  MONARCH_ASSIGN(const int fd, descriptor(blob));
  std::string bytes(length, '\0');
  for (std::size_t done = 0; done < length;) {
    const ssize_t n = ::pread(fd, bytes.data() + done, length - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error("reading a piece of a checkpoint", n < 0 ? errno : EIO);
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

Result<UniqueFd> VaultMemory::copy_of(BlobId blob) const {
  MONARCH_ASSIGN(const int fd, descriptor(blob));
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return errno_error("duplicating the descriptor of a checkpoint", errno);
  return copy;
}

Result<int> VaultMemory::descriptor(BlobId blob) const {
  const auto found = blobs_.find(blob);
  if (found == blobs_.end()) return Error{ErrorCode::kNotFound, text("there is no checkpoint ", blob.value())};
  return found->second.get();
}

}  // namespace monarch::vault
