#include "supervisor/launch/talk/worker_image.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kMostBytes = 256U << 20U;  // a larger file is none of ours

Result<std::string> read_program(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return errno_error(text("reading ", path), errno);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (bytes.empty() || bytes.size() > kMostBytes) {
    return Error{ErrorCode::kInvalid, text(path, " is no program of ours: it has ", bytes.size(), " bytes")};
  }
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("reading ", path), errno);
    if (got == 0) return Error{ErrorCode::kGone, text(path, " became shorter while it was read")};
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<std::shared_ptr<const WorkerImage>> image_of(std::string bytes, std::uint64_t head) {
  auto image = std::make_shared<WorkerImage>();
  image->bytes = std::move(bytes);
  image->file = {.sha256 = sha256(image->bytes), .size = image->bytes.size(), .head = head};
  utsname machine{};
  if (::uname(&machine) != 0) return errno_error("uname", errno);
  image->machine = machine.machine;
  return std::shared_ptr<const WorkerImage>(std::move(image));
}

}  // namespace

Result<std::shared_ptr<const WorkerImage>> read_worker_image(const std::string& path) {
  MONARCH_ASSIGN(std::string bytes, read_program(path));
  return image_of(std::move(bytes), 0);
}

Result<std::shared_ptr<const WorkerImage>> read_bundle(const std::string& monarch, const std::string& worker) {
  MONARCH_ASSIGN(std::string bytes, read_program(monarch));
  const std::uint64_t head = bytes.size();
  MONARCH_ASSIGN(const std::string second, read_program(worker));
  bytes += second;
  return image_of(std::move(bytes), head);
}

RemoteOrder order_with(RemotePurpose purpose, const WorkerImage* image, std::string installed) {
  RemoteOrder order{.purpose = purpose, .installed = std::move(installed)};
  if (image != nullptr) {
    order.file = image->file;
    order.machine = image->machine;
  }
  return order;
}

}  // namespace monarch
