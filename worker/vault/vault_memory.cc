#include "worker/vault/vault_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/sealed_memory.h"

namespace monarch::vault {

void VaultMemory::adopt(BlobId blob, UniqueFd sealed, std::uint64_t bytes) {
  blobs_[blob] = {.memory = std::move(sealed), .bytes = bytes, .is_whole = true, .is_sealed = true};
  kept_bytes_ += bytes;
  give_up_spares(0);
}

Status VaultMemory::create(BlobId blob, std::uint64_t bytes) {
  MONARCH_ASSIGN(UniqueFd fd, take_memory(bytes));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return errno_error(text("memory for a checkpoint of ", amount_text(bytes)), errno);
  }
  blobs_[blob] = {.memory = std::move(fd), .bytes = bytes};
  kept_bytes_ += bytes;
  give_up_spares(0);
  return {};
}

// The spare that has most nearly as many, and no more than twice as many: what it has too much goes back to the system.
Result<UniqueFd> VaultMemory::take_memory(std::uint64_t bytes) {
  const auto differs = [bytes](const Spare& one) { return std::max(one.bytes, bytes) - std::min(one.bytes, bytes); };
  const auto nearest = std::min_element(spares_.begin(), spares_.end(), [&](const Spare& one, const Spare& other) {
    return differs(one) < differs(other);
  });
  if (nearest != spares_.end() && nearest->bytes / 2 <= bytes) {
    UniqueFd memory = std::move(nearest->memory);
    spare_bytes_ -= nearest->bytes;
    spares_.erase(nearest);
    give_up_spares(bytes);
    return memory;
  }
  UniqueFd fd(::memfd_create("monarch-checkpoint", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errno_error("memfd_create", errno);
  return fd;
}

// `room`: bytes that are needed beside what is kept.
void VaultMemory::give_up_spares(std::uint64_t room) {
  const std::uint64_t kept = kept_bytes_ + room;
  const std::uint64_t left = most_ - std::min(most_, kept);
  while (!spares_.empty() && spare_bytes_ > std::min(left, kept)) {
    spare_bytes_ -= spares_.front().bytes;
    spares_.pop_front();
  }
}

Status VaultMemory::write(BlobId blob, std::uint64_t offset, std::string_view bytes) {
  MONARCH_ASSIGN(const Blob* const into, find(blob));
  if (into->is_whole || offset > into->bytes || bytes.size() > into->bytes - offset) {
    return Error{ErrorCode::kInvalid,
                 text("checkpoint ", blob.value(), " takes no ", bytes.size(), " bytes at ", offset)};
  }
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        ::pwrite(into->memory.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error("writing a piece of a checkpoint into memory", n < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

void VaultMemory::close(BlobId blob) {
  const auto found = blobs_.find(blob);
  if (found != blobs_.end()) found->second.is_whole = true;
}

void VaultMemory::drop(BlobId blob) {
  const auto found = blobs_.find(blob);
  if (found == blobs_.end()) return;
  Blob dropped = std::move(found->second);
  blobs_.erase(found);
  kept_bytes_ -= dropped.bytes;
  if (!dropped.is_sealed && dropped.bytes > 0) {
    spare_bytes_ += dropped.bytes;
    spares_.push_back({.memory = std::move(dropped.memory), .bytes = dropped.bytes});
  }
  give_up_spares(0);
}

Result<std::string> VaultMemory::read(BlobId blob, std::uint64_t offset, std::size_t length) const {
  MONARCH_ASSIGN(const Blob* const from, find(blob));
  std::string bytes(length, '\0');
  for (std::size_t done = 0; done < length;) {
    const ssize_t n =
        ::pread(from->memory.get(), bytes.data() + done, length - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno_error("reading a piece of a checkpoint", n < 0 ? errno : EIO);
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

Result<std::shared_ptr<const MappedMemory>> VaultMemory::map(BlobId blob, std::uint64_t offset,
                                                             std::size_t length) const {
  MONARCH_ASSIGN(const Blob* const from, find(blob));
  if (length == 0 || offset > from->bytes || length > from->bytes - offset) {
    return Error{ErrorCode::kInvalid, text("checkpoint ", blob.value(), " has no ", length, " bytes at ", offset)};
  }
  return MappedMemory::map_part(from->memory.get(), offset, length);
}

Result<UniqueFd> VaultMemory::copy_of(BlobId blob) {
  MONARCH_TRY(find(blob));
  Blob& given = blobs_.at(blob);
  if (!given.is_sealed) {
    MONARCH_TRY(seal_memory(given.memory.get()));
  }
  given.is_sealed = true;
  UniqueFd copy(::fcntl(given.memory.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return errno_error("duplicating the descriptor of a checkpoint", errno);
  return copy;
}

Result<const VaultMemory::Blob*> VaultMemory::find(BlobId blob) const {
  const auto found = blobs_.find(blob);
  if (found == blobs_.end()) return Error{ErrorCode::kNotFound, text("there is no checkpoint ", blob.value())};
  return &found->second;
}

}  // namespace monarch::vault
