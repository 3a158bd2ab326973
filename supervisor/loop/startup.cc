#include "supervisor/loop/startup.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "supervisor/client/continuation.h"
#include "supervisor/client/job_secrets.h"
#include "supervisor/client/job_view.h"
#include "supervisor/client/link/endpoint.h"
#include "supervisor/client/shell_values.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/journal/job_home.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"

extern char** environ;

namespace monarch {

namespace {

// The folder of a job is beside those of others.
std::string root_of(const std::string& job_directory) {
  const std::size_t slash = job_directory.rfind('/');
  return job_directory.substr(0, job_directory.rfind('/', slash - 1));
}

Started<JobFiles> failed(int exit_code, std::string message) { return {nullptr, {exit_code, std::move(message)}}; }

// What has to be durable as TERM has: who started the job has left that to its first supervisor. One that comes back
// finds it on the disk, and has little to wait for.
Result<std::vector<FileBeside>> files_of_term(JournalFiles& files, HomeFile home) {
  MONARCH_ASSIGN(const std::vector<std::string> names, files.list());
  std::vector<FileBeside> beside;
  for (const char* name : {kSpecFile, kSpecDirectoryFile, kSpecOriginFile}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) beside.push_back({.name = name});
  }
  if (home == HomeFile::kWrittenAside) beside.push_back({.name = kHomeFile, .aside = true});
  return beside;
}

}  // namespace

Result<LoadedSpec> load_job_spec(const SecureDirectory& directory) {
  MONARCH_ASSIGN(std::string spec, directory.read_file(kSpecFile, limits::kSpecBytes));
  MONARCH_ASSIGN(std::string folder, directory.read_file(kSpecDirectoryFile, limits::kSpecBytes));
  while (!folder.empty() && folder.back() == '\n') folder.pop_back();
  SpecOutcome outcome =
      load_spec({.name = kSpecFile, .text = std::move(spec), .directory = std::move(folder)}, users_surroundings());
  if (!outcome.loaded) {
    return Error{ErrorCode::kInvalid, outcome.diagnostics.empty() ? "not a spec" : outcome.diagnostics.front().message};
  }
  return std::move(*outcome.loaded);
}

// A job that never began has what the one before it left: nobody may take that for nothing.
Result<Inheritance> inheritance_of(const JobFiles& files) {
  constexpr std::size_t kMostInARow = 64;
  auto from = continues_from(files.directory);
  if (!from) return Inheritance();
  const auto read = [&]() -> Result<Inheritance> {
    MONARCH_ASSIGN(const StateDir state, StateDir::open(files.root));
    for (std::size_t row = 0; row < kMostInARow; ++row) {
      MONARCH_ASSIGN(const JobView before, JobView::open(state, *from));
      MONARCH_ASSIGN(const LoadedSpec had, load_job_spec(before.directory().directory));
      MONARCH_ASSIGN(std::optional<Inheritance> all, before.inheritance(had.spec, files.spec.spec));
      const auto further = continues_from(before.directory().directory);
      if (all || !further) return std::move(all).value_or(Inheritance());
      from = further;
    }
    return Error{ErrorCode::kInvalid, "too many jobs go on from each other, and none of them ever began"};
  };
  auto all = read();
  if (!all.ok()) return Error{all.error().code, text("it goes on from ", *from, ": ", all.error().message)};
  all->job = *from;
  return all;
}

Started<JobFiles> open_job_files(const std::string& job_directory, bool force_takeover) {
  auto directory = SecureDirectory::open(job_directory);
  if (!directory.ok()) return failed(kExitInternal, directory.error().message);
  auto lock = JobLock::take(*directory, this_process_as_holder(wall_now()));
  if (!lock.ok()) {
    return failed(lock.error().code == ErrorCode::kBusy ? kExitBusy : kExitInternal, lock.error().message);
  }
  const auto home = check_home(*directory, force_takeover);
  if (!home.ok()) {
    return failed(home.error().code == ErrorCode::kBusy ? kExitBusy : kExitInternal, home.error().message);
  }
  auto spec = load_job_spec(*directory);
  if (!spec.ok()) return failed(kExitUsage, text(job_directory, "/", kSpecFile, ": ", spec.error().message));
  const bool away = spec->spec.supervised_away();
  auto shell = shell_values(spec->spec, environ, away ? kShellPrefix : "");
  if (!shell.ok()) return failed(kExitUsage, shell.error().message);
  auto logs = directory->child_or_create(kLogDirectory);
  if (!logs.ok()) return failed(kExitInternal, logs.error().message);
  auto duplicate = directory->duplicate();
  if (!duplicate.ok()) return failed(kExitInternal, duplicate.error().message);
  auto files = posix_journal_files(std::move(*duplicate));
  auto beside = files_of_term(*files, *home);
  if (!beside.ok()) return failed(kExitInternal, beside.error().message);
  auto journal = recover_journal(
      *files,
      {.wall = wall_now(), .now = boot_now(), .writer = {}, .forced = force_takeover, .beside = std::move(*beside)});
  if (!journal.ok()) return failed(kExitJournal, text("the journal of ", job_directory, ": ", journal.error().message));
  if (!journal->contents.why.empty()) log_warn("journal: ", journal->contents.describe_end());

  const std::string path = directory->path();
  return {std::make_unique<JobFiles>(JobFiles{.directory = std::move(*directory),
                                              .job_id = path.substr(path.rfind('/') + 1),
                                              .root = root_of(path),
                                              .lock = std::move(*lock),
                                              .spec = std::move(*spec),
                                              .shell = std::move(*shell),
                                              .journal_files = std::move(files),
                                              .journal = std::move(*journal)}),
          {}};
}

Result<CurveKeyPair> job_keys(const SecureDirectory& directory) {
  auto kept = directory.read_file(kKeyFile, kCurveKeyBytes);
  if (kept.ok()) {
    auto secret = CurveSecretKey::from_bytes(*kept);
    explicit_bzero(kept->data(), kept->size());
    if (secret.ok()) return curve_key_pair_of(std::move(*secret));
    log_warn(directory.path(), "/", kKeyFile, ": ", secret.error().message, "; another one is made");
  } else if (kept.error().code != ErrorCode::kNotFound) {
    return kept.error();
  }
  MONARCH_ASSIGN(CurveKeyPair pair, make_curve_key_pair());
  MONARCH_TRY(directory.write_file(kKeyFile, pair.secret_key.bytes(), Durability::kLater));
  return pair;
}

KnownPorts known_ports(const SecureDirectory& directory) {
  const auto kept = directory.read_file(kPortsFile, kEndpointBytes);
  if (!kept.ok()) return {};
  const auto json = parse_json(*kept);
  if (!json.ok()) return {};
  const auto port = [&](const char* name) {
    const Json* member = json->find(name);
    const std::int64_t number = member != nullptr ? member->as_int64().value_or(0) : 0;
    return number > 0 && number <= 65'535 ? static_cast<std::uint16_t>(number) : std::uint16_t{0};
  };
  return {.control = port("control"), .bulk = port("bulk")};
}

Status keep_ports(const SecureDirectory& directory, const KnownPorts& ports) {
  const Json json = Json::object({{"v", 1}, {"control", ports.control}, {"bulk", ports.bulk}});
  return directory.write_file(kPortsFile, to_json(json) + "\n", Durability::kLater);
}

std::vector<FileBeside> files_of_ports() { return {{.name = kKeyFile}, {.name = kPortsFile}}; }

bool has_successor(const SecureDirectory& directory, Term term) {
  const auto kept = directory.read_file(kEndpointFile, kEndpointBytes);
  if (!kept.ok()) return false;
  const auto endpoint = parse_endpoint(*kept);
  return endpoint.ok() && endpoint->term > term;
}

JobUuid make_job_uuid() {
  JobUuid uuid;
  const std::string bytes = random_bytes(uuid.bytes.size());
  std::copy(bytes.begin(), bytes.end(), uuid.bytes.begin());
  return uuid;
}

}  // namespace monarch
