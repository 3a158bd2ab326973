#include "worker/keeper/actor_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/rank.h"

namespace monarch {

Status ActorProgram::put_into(std::vector<std::string>& program, const std::string& tree) {
  const auto named = std::find(program.begin(), program.end(), kActorProgram);
  if (named == program.end()) return {};
  const std::string path = text(folder_, "/monarch-rank");
  if (!written_) {
    MONARCH_TRY(write(path));
    written_ = true;
  }
  *named = path;
  program.emplace_back("--tree");
  program.push_back(tree);
  return {};
}

Status ActorProgram::write(const std::string& path) const {
  if (bytes_.empty() || folder_.empty()) return Error{ErrorCode::kUnsupported, "this worker has no monarch-rank"};
  const std::string fresh = path + ".new";
  (void)::unlink(fresh.c_str());  // of a keeper that was killed here
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700));
  if (!file.valid()) return errno_error(text("making ", printable(fresh)), errno);
  for (std::string_view left = bytes_; !left.empty();) {
    const ssize_t count = ::write(file.get(), left.data(), left.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(text("writing ", printable(fresh)), errno);
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  file.reset();
  if (::rename(fresh.c_str(), path.c_str()) != 0) return errno_error(text("making ", printable(path)), errno);
  return {};
}

}  // namespace monarch
