#include "worker/keeper/rank_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/rank.h"
#include "worker/errand/tree_builder.h"

namespace monarch {

namespace {

constexpr const char* kModules = "python";

}  // namespace

RankFiles::RankFiles(const std::string& state_directory, const RankFileBytes& bytes)
    : folder_(state_directory.empty() ? "" : text(state_directory, '/', kRanksName)), bytes_(bytes) {}

Status RankFiles::put_program(std::vector<std::string>& program, const std::string& tree) {
  const auto named = std::find(program.begin(), program.end(), kActorProgram);
  if (named == program.end()) return {};
  MONARCH_ASSIGN(*named, put("monarch-rank", bytes_.program));
  program.emplace_back("--tree");
  program.push_back(tree);
  return {};
}

Status RankFiles::put_library(RankDoorPaths& paths) {
  MONARCH_ASSIGN(paths.library, put("libmonarch-rank.so", bytes_.library));
  return {};
}

Status RankFiles::put_modules(RankDoorPaths& paths) {
  for (std::string_view left = bytes_.modules; !left.empty();) {
    const std::size_t blank = left.find(' ');
    const std::size_t line = left.find('\n');
    std::size_t size = 0;
    std::string_view digits = left.substr(blank + 1, line - blank - 1);
    MONARCH_ASSERT_BECAUSE(blank < line && line < left.size() && take_number(digits, size), "our build wrote it");
    MONARCH_TRY(put(text(kModules, '/', left.substr(0, blank)), left.substr(line + 1, size)));
    left.remove_prefix(line + 1 + size);
  }
  paths.modules = text(folder_, '/', kModules);
  return {};
}

Status RankFiles::make_folders(const std::string& name) const {
  std::string folder = folder_;
  for (std::size_t at = 0; at != std::string::npos; at = name.find('/', at + 1)) {
    if (at != 0) folder = text(folder_, '/', name.substr(0, at));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return errno_error(text("making ", printable(folder)), errno);
    }
  }
  return {};
}

Result<std::string> RankFiles::put(const std::string& name, std::string_view bytes) {
  if (bytes.empty() || folder_.empty()) return Error{ErrorCode::kUnsupported, text("this worker has no ", name)};
  const std::string path = text(folder_, '/', name);
  if (written_.contains(name)) return path;
  MONARCH_TRY(make_folders(name));
  MONARCH_TRY(write(path, bytes));
  written_.insert(name);
  return path;
}

Status RankFiles::write(const std::string& path, std::string_view bytes) const {
  const std::string fresh = path + ".new";
  (void)::unlink(fresh.c_str());  // of a keeper that was killed here
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0700));
  if (!file.valid()) return errno_error(text("making ", printable(fresh)), errno);
  for (std::string_view left = bytes; !left.empty();) {
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
