#include "supervisor/doctor/spec_checks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "supervisor/core/spec/placement.h"
#include "supervisor/doctor/need_checks.h"
#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch::doctor {

namespace {

// As execvp(3) without PATH.
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

std::string variable(const MeshSpec& mesh, const Variables& environment, const std::string& name) {
  if (const auto own = mesh.env.find(name); own != mesh.env.end()) return own->second;
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

// `wrap` starts the program, where there is one.
Finding check_program(const MeshSpec& mesh, const std::string& check, const std::string& program,
                      const std::string& workdir, const Variables& environment) {
  if (expands(program))
    return {.check = check, .health = Health::kNote, .found = printable(program) + " is known only later"};
  std::string path = variable(mesh, environment, "PATH");
  const auto file = find_program(program, workdir, path.empty() ? std::string(kDefaultPath) : path);
  if (file.ok()) return {.check = check, .found = text(printable(program), " is ", printable(*file))};
  return {.check = check,
          .health = Health::kFailed,
          .found = file.error().message,
          .means = text("the ranks of ", mesh.name, " would end with exit code ",
                        file.error().code == ErrorCode::kNotFound ? 127 : 126),
          .fix = "install it, make it executable, or name it by its path"};
}

// What lies on other machines is looked at there: host_requests.h.
Findings check_mesh(const MeshSpec& mesh, const JobSpec& spec, const Variables& environment) {
  const std::string check = text("mesh ", mesh.name);
  const std::string base = base_directory(spec);
  const bool is_below = mesh.workdir && !mesh.workdir->starts_with('/');
  const std::string workdir = is_below ? text(base, '/', *mesh.workdir) : mesh.workdir.value_or(base);
  const bool here = spec.launch.facts().one_machine;
  struct stat status {};
  Findings findings;
  if (here && !expands(workdir) &&
      (::stat(workdir.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || ::access(workdir.c_str(), X_OK) != 0)) {
    findings.push_back({.check = check,
                        .health = Health::kFailed,
                        .found = text("workdir ", printable(workdir), " is no folder that can be entered"),
                        .means = text("the ranks of ", mesh.name, " cannot start in it"),
                        .fix = "make it, or change `workdir`"});
  }
  if (here && !mesh.wrap.empty())
    findings.push_back(check_program(mesh, check, mesh.wrap.front(), workdir, environment));
  if (here && mesh.wrap.empty() && !mesh.program.empty()) {
    findings.push_back(check_program(mesh, check, mesh.program.front(), workdir, environment));
  }
  for (const std::string& name : mesh.env_pass) {
    if (name.find('*') != std::string::npos || environment.contains(name)) continue;
    findings.push_back({.check = check,
                        .health = Health::kWarning,
                        .found = text("env_pass: ", printable(name), " is not set in this shell"),
                        .means = "the ranks will not have it",
                        .fix = text("export ", printable(name), "=…")});
  }
  return findings;
}

}  // namespace

bool expands(std::string_view word) { return word.find("$(") != std::string_view::npos; }

Result<std::string> find_program(const std::string& program, const std::string& workdir,
                                 const std::string& search_path) {
  std::vector<std::string> candidates;
  if (program.find('/') != std::string::npos) {
    candidates.push_back(program.front() == '/' ? program : text(workdir, "/", program));
  } else {
    std::string_view rest = search_path;
    for (bool more = true; more;) {
      const std::size_t colon = rest.find(':');
      const std::string_view folder = rest.substr(0, colon);
      candidates.push_back(folder.starts_with('/') ? text(folder, "/", program)
                                                   : text(workdir, "/", folder, folder.empty() ? "" : "/", program));
      more = colon != std::string_view::npos;
      rest.remove_prefix(more ? colon + 1 : rest.size());
    }
  }
  std::optional<Error> why;
  for (const std::string& file : candidates) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && ::access(file.c_str(), X_OK) == 0) return file;
    if (!why) why = Error{ErrorCode::kInvalid, text(printable(file), " cannot be executed")};
  }
  if (why) return *why;
  return Error{ErrorCode::kNotFound, program.find('/') != std::string::npos
                                         ? text(printable(candidates.front()), " is not there")
                                         : text("no ", printable(program), " in PATH")};
}

std::vector<Check> spec_checks(const JobSpec& spec, const Variables& environment) {
  std::vector<Check> checks;
  for (const MeshSpec& mesh : spec.meshes) {
    checks.push_back({.name = text("mesh ", mesh.name),
                      .run = [mesh, spec, environment] { return check_mesh(mesh, spec, environment); }});
  }
  return checks;
}

}  // namespace monarch::doctor
