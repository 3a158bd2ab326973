#include "supervisor/journal/job_home.h"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "supervisor/journal/job_lock.h"
#include "transport/base/clock.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kHomeBytes = 8'192;

std::string machine_id() {
  std::ifstream file("/etc/machine-id");
  std::string line;
  std::getline(file, line);
  return line;
}

std::string written_text(const JobHome& home) {
  return to_json(Json::object({{"v", 1},
                               {"machine", home.machine},
                               {"boot_id", home.boot_id},
                               {"device", home.device},
                               {"inode", home.inode},
                               {"path", home.path}})) +
         "\n";
}

Result<JobHome> parse_home(const SecureDirectory& job, const std::string& bytes) {
  const auto json = parse_json(bytes, {.bytes = kHomeBytes});
  if (!json.ok() || json->get_int64("v") != 1) {
    return Error{ErrorCode::kInternal, text(job.path(), "/", kHomeFile, " cannot be read")};
  }
  return JobHome{.machine = json->get_string("machine").value_or(""),
                 .boot_id = json->get_string("boot_id").value_or(""),
                 .device = json->get_uint64("device").value_or(0),
                 .inode = json->get_uint64("inode").value_or(0),
                 .path = json->get_string("path").value_or("")};
}

}  // namespace

Result<JobHome> home_of(const SecureDirectory& job) {
  struct stat status {};
  if (::fstat(job.fd(), &status) != 0) return errno_error(text("fstat ", job.path()), errno);
  LockHolder here = this_process_as_holder(wall_now());
  JobHome home{.machine = machine_id(),
               .boot_id = std::move(here.boot_id),
               .device = status.st_dev,
               .inode = status.st_ino,
               .path = job.path()};
  if (home.machine.empty()) home.machine = std::move(here.host);
  return home;
}

bool is_same_home(const JobHome& written, const JobHome& now) {
  if (written.machine != now.machine || written.inode != now.inode) return false;
  return written.boot_id != now.boot_id || written.device == now.device;
}

Result<HomeFile> check_home(const SecureDirectory& job, bool force) {
  MONARCH_ASSIGN(const JobHome now, home_of(job));
  const auto bytes = job.read_file(kHomeFile, kHomeBytes);
  if (!bytes.ok() && bytes.error().code != ErrorCode::kNotFound) return bytes.error();
  if (bytes.ok() && !force) {
    MONARCH_ASSIGN(const JobHome written, parse_home(job, *bytes));
    if (is_same_home(written, now)) return HomeFile::kThere;
    const bool moved = written.machine == now.machine;
    return Error{ErrorCode::kBusy,
                 text("the job was started in ", printable(written.path),
                      moved ? ", and this is another directory: a copy of it"
                            : text(" on another machine (machine id ", printable(written.machine), ", here ",
                                   printable(now.machine), ")"),
                      "; a supervisor there may hold the job. If you know that there is none: --force-takeover")};
  }
  MONARCH_TRY(job.write_aside(kHomeFile, written_text(now)));
  return HomeFile::kWrittenAside;
}

}  // namespace monarch
