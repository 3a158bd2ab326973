#include "cli/artifacts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/write_all.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/client/viewer_json.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

namespace fs = std::filesystem;

constexpr int kWriteFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

Error file_error(std::string_view what, const fs::path& path, const std::error_code& why) {
  return Error{ErrorCode::kInternal, text(what, " ", printable(path.string()), ": ", why.message())};
}

Status write_new_file(const std::string& path, std::string_view content) {
  const UniqueFd file(::open(path.c_str(), kWriteFlags, 0666));
  if (!file.valid()) return errno_error(text("writing ", printable(path)), errno);
  return write_all(file.get(), content, text("writing ", printable(path)));
}

// A log may be larger than memory.
Status copy_regular_file(const fs::path& from, const fs::path& to) {
  const UniqueFd source(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat what {};
  if (!source.valid() || ::fstat(source.get(), &what) != 0) {
    return errno_error(text("reading ", printable(from.string())), errno);
  }
  if (!S_ISREG(what.st_mode)) return {};  // none of ours
  const UniqueFd target(::open(to.c_str(), kWriteFlags, 0666));
  if (!target.valid()) return errno_error(text("writing ", printable(to.string())), errno);
  const std::string writing = text("writing ", printable(to.string()));
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
Status copy_logs(const fs::path& from, const fs::path& to) {
  Status first;
  std::error_code failed;
  fs::create_directories(to, failed);
  if (failed) return file_error("making", to, failed);
  for (fs::directory_iterator meshes(from, failed), end; !failed && meshes != end; meshes.increment(failed)) {
    if (!fs::is_directory(meshes->symlink_status(failed))) continue;
    const fs::path target = to / meshes->path().filename();
    fs::create_directories(target, failed);
    if (failed) return file_error("making", target, failed);
    for (fs::directory_iterator files(meshes->path(), failed); !failed && files != end; files.increment(failed)) {
      if (!fs::is_regular_file(files->symlink_status(failed))) continue;
      keep_first(first, copy_regular_file(files->path(), target / files->path().filename()));
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

Status check_report_file(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::kInvalid, "the name of a file is empty"};
  std::error_code failed;
  const fs::path file(path);
  if (fs::is_directory(file, failed)) {
    return Error{ErrorCode::kInvalid, text(printable(path), ": is a folder")};
  }
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return errno_error(text(printable(path), ": writing into ", printable(folder.string())), errno);
  }
  return {};
}

Status write_report_file(const std::string& path, const std::string& content) {
  const std::string fresh = text(path, ".", ::getpid(), ".new");
  Status written = write_new_file(fresh, content);
  if (written.ok() && ::rename(fresh.c_str(), path.c_str()) != 0) {
    written = errno_error(text("writing ", printable(path)), errno);
  }
  if (!written.ok()) (void)::unlink(fresh.c_str());  // it is said that nothing was written
  return written;
}

Status make_artifacts_directory(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::kInvalid, "the name of a folder is empty"};
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return file_error("making", path, failed);
  const bool empty = fs::is_empty(path, failed);
  if (failed) return file_error("reading", path, failed);
  if (!fs::is_directory(path, failed)) return Error{ErrorCode::kInvalid, text(printable(path), ": is no folder")};
  if (!empty) return Error{ErrorCode::kInvalid, text(printable(path), ": there is something in it")};
  if (::access(path.c_str(), W_OK | X_OK) != 0) return errno_error(text("writing into ", printable(path)), errno);
  return {};
}

Status copy_artifacts(const JobView& job, const Verdict& verdict, const std::string& directory) {
  Status first;
  const fs::path from(job.path());
  const fs::path to(directory);
  const auto put = [&](const char* name, const std::string& content) {
    keep_first(first, write_new_file((to / name).string(), content));
  };
  put("verdict.json", to_json(verdict_json(verdict)) + "\n");
  put("events.jsonl", events_of(job, first));
  keep_first(first, copy_regular_file(from / "spec.yaml", to / "spec.yaml"));
  keep_first(first, copy_regular_file(from / kSupervisorLogFile, to / "supervisor.log"));
  keep_first(first, copy_logs(job.log_directory(), to / "logs"));
  return first;
}

}  // namespace monarch
