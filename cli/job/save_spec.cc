#include "cli/job/save_spec.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cli/term/write_all.h"
#include "supervisor/spec/relocate.h"
#include "supervisor/spec/spec.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

Status save_spec(const std::string& path, const WholeSpec& spec) {
  const std::string what = text("cannot write ", printable(path));
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (error) return errno_error(text(what, ": the working directory"), error.value());
  const std::string folder = whole.lexically_normal().parent_path().string();
  const std::string words = moved_spec(spec.text, {.from = spec.directory, .to = folder});
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666));
  if (fd.valid()) {
    Status written = write_all(fd.get(), words, what);
    if (!written.ok()) (void)::unlink(path.c_str());  // half a spec is worse than none; what failed is said
    return written;
  }
  if (errno != EEXIST) return errno_error(what, errno);
  const auto there = read_spec_file(path, Duration::zero());
  if (there.ok() && there->text == words) return {};
  return Error{ErrorCode::kInvalid, text(what, ": it is there already, and is another: choose another name")};
}

}  // namespace monarch
