#include "supervisor/client/output/log_file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kLooks = 10;  // rotations under our eyes; one takes megabytes of output

// Never through a link, and never waiting for the writer of a FIFO: these are regular files or nothing.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

bool take_offset(std::string_view& rest, std::uint64_t& offset) {
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return take_number(rest, offset);
}

}  // namespace

LogFileReader::Part LogFileReader::open_part(const std::string& path) {
  Part part;
  part.file = UniqueFd(::open(path.c_str(), kOpenFlags));
  struct stat what {};
  if (!part.file.valid() || ::fstat(part.file.get(), &what) != 0 || !S_ISREG(what.st_mode)) return {};
  part.size = static_cast<std::uint64_t>(what.st_size);
  part.inode = what.st_ino;
  return part;
}

std::string LogFileReader::read_start(const std::string& path) {
  const UniqueFd file(::open(text(path, ".start").c_str(), kOpenFlags));
  std::array<char, 64> buffer{};
  const long got = file.valid() ? ::read(file.get(), buffer.data(), buffer.size()) : 0;
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

Status LogFileReader::place(const std::string& start) {
  if (start.empty()) return {};
  std::string_view rest = start;
  std::uint64_t next = 0;
  if (!take_offset(rest, newer_.begin)) return Error{ErrorCode::kInvalid, "its .start holds no offset"};
  const bool moved = take_offset(rest, next) && newer_.size == 0;
  if (moved) newer_.begin = next;
  if (!older_.file.valid()) return {};
  if (older_.size > newer_.begin) return Error{ErrorCode::kInvalid, "its .start and its .1 contradict each other"};
  older_.begin = newer_.begin - older_.size;
  return {};
}

Result<LogFileReader> LogFileReader::open(const std::string& path) {
  for (int look = 0; look < kLooks; ++look) {
    LogFileReader reader;
    const std::string start = read_start(path);
    reader.newer_ = open_part(path);
    if (!start.empty()) reader.older_ = open_part(path + ".1");
    const bool renamed_meanwhile = reader.older_.file.valid() && reader.older_.inode == reader.newer_.inode;
    if (read_start(path) != start || renamed_meanwhile) continue;
    if (!reader.newer_.file.valid() && !reader.older_.file.valid()) {
      return Error{ErrorCode::kNotFound, text("there is no ", printable(path))};
    }
    if (auto placed = reader.place(start); !placed.ok()) {
      return Error{placed.error().code, text("reading ", printable(path), ": ", placed.error().message)};
    }
    return reader;
  }
  return Error{ErrorCode::kBusy, text("reading ", printable(path), ": it is rotated faster than it can be opened")};
}

std::string LogFileReader::read(std::uint64_t offset, std::size_t size) const {
  const Part& part = offset >= newer_.begin ? newer_ : older_;
  const std::uint64_t there = part.begin + part.size - offset;
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(there, size)), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const long got = ::pread(part.file.get(), bytes.data() + have, bytes.size() - have,
                             static_cast<off_t>(offset - part.begin + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a disk that fails, or a file that was cut: the caller sees that nothing came
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace monarch
