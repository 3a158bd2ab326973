#include "cli/follow/artifacts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/term/write_all.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/start_supervisor.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLogsFolder = "logs";

Error file_error(std::string_view what, const fs::path& path, const std::error_code& why) {
  return Error{ErrorCode::kInternal, text(what, " ", printable(path.string()), ": ", why.message())};
}

std::string path_in(const ArtifactFolder& folder, const std::string& name) {
  return text(printable(folder.path()), "/", printable(name));
}

Status put_file(const ArtifactFolder& to, const std::string& name, std::string_view content) {
  MONARCH_ASSIGN(const UniqueFd file, to.make_file(name));
  return write_all(file.get(), content, text("writing ", path_in(to, name)));
}

// A log may be larger than memory.
Status copy_regular_file(const fs::path& from, const ArtifactFolder& to, const std::string& name) {
  const UniqueFd source(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat what {};
  if (!source.valid() || ::fstat(source.get(), &what) != 0) {
    return errno_error(text("reading ", printable(from.string())), errno);
  }
  if (!S_ISREG(what.st_mode)) return {};  // none of ours
  MONARCH_ASSIGN(const UniqueFd target, to.make_file(name));
  const std::string writing = text("writing ", path_in(to, name));
  std::string buffer(256U << 10U, '\0');
  for (;;) {
    const long got = ::read(source.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("reading ", printable(from.string())), errno);
    if (got == 0) return {};
    MONARCH_TRY(write_all(target.get(), std::string_view(buffer).substr(0, static_cast<std::size_t>(got)), writing));
  }
}

void keep_first(Status& first, Status next) {
  if (first.ok() && !next.ok()) first = std::move(next);
}

// Two levels: meshes, and the files of their ranks.
Status copy_logs(const fs::path& from, const ArtifactFolder& to) {
  MONARCH_TRY(to.make_folder(kLogsFolder));
  Status first;
  std::error_code failed;
  for (fs::directory_iterator meshes(from, failed), end; !failed && meshes != end; meshes.increment(failed)) {
    if (!fs::is_directory(meshes->symlink_status(failed))) continue;
    const std::string mesh = text(kLogsFolder, "/", meshes->path().filename().string());
    MONARCH_TRY(to.make_folder(mesh));
    for (fs::directory_iterator files(meshes->path(), failed); !failed && files != end; files.increment(failed)) {
      if (!fs::is_regular_file(files->symlink_status(failed))) continue;
      keep_first(first, copy_regular_file(files->path(), to, text(mesh, "/", files->path().filename().string())));
    }
  }
  if (failed && failed != std::errc::no_such_file_or_directory) keep_first(first, file_error("reading", from, failed));
  return first;
}

std::string events_of(const JobView& job, Status& first) {
  const auto events = job.events();
  if (!events.ok()) {
    keep_first(first, events.error());
    return "";
  }
  std::string lines;
  for (const JobEvent& event : events->events) lines += to_json(event_json(event)) + "\n";
  return lines;
}

}  // namespace

Status copy_artifacts(const JobView& job, const Verdict& verdict, const ArtifactFolder& to) {
  Status first;
  const fs::path from(job.path());
  keep_first(first, put_file(to, "verdict.json", to_json(verdict_json(verdict)) + "\n"));
  keep_first(first, put_file(to, "events.jsonl", events_of(job, first)));
  keep_first(first, copy_regular_file(from / "spec.yaml", to, "spec.yaml"));
  keep_first(first, copy_regular_file(from / kSupervisorLogFile, to, "supervisor.log"));
  keep_first(first, copy_logs(job.log_directory(), to));
  return first;
}

}  // namespace monarch
