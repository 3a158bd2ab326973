#include "supervisor/spec/schema/suggest.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <vector>

#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/schema.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// As people write keys elsewhere: maxRestarts, max-restarts, MAX_RESTARTS.
std::string snake(std::string_view key) {
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto c = static_cast<unsigned char>(key[i]);
    if (std::isupper(c) != 0 && i > 0 && std::islower(static_cast<unsigned char>(key[i - 1])) != 0) out.push_back('_');
    out.push_back(c == '-' ? '_' : static_cast<char>(std::tolower(c)));
  }
  return out;
}

struct Synonym {
  std::string_view theirs;
  std::string_view ours;  // a path; its last part is the key
};

constexpr Synonym kSynonyms[] = {
    {"command", "meshes.*.program"},
    {"cmd", "meshes.*.program"},
    {"args", "meshes.*.program"},
    {"entrypoint", "meshes.*.program"},
    {"script", "meshes.*.program"},
    {"module", "meshes.*.program"},
    {"run", "meshes.*.program"},
    {"exec", "meshes.*.program"},
    {"nproc_per_node", "meshes.*.dims"},
    {"nprocs", "meshes.*.dims"},
    {"shape", "meshes.*.dims"},
    {"dimensions", "meshes.*.dims"},
    {"ntasks_per_node", "meshes.*.dims"},
    {"world_size", "meshes.*.dims"},
    {"np", "meshes.*.dims"},
    {"ntasks", "meshes.*.dims"},
    {"count", "meshes.*.dims"},
    {"map_by", "meshes.*.dims"},
    {"bind_to", "meshes.*.resources.bind"},
    {"cpu_bind", "meshes.*.resources.bind"},
    {"replicas", "meshes.*.gang"},
    {"environment", "meshes.*.env"},
    {"envs", "meshes.*.env"},
    {"export", "meshes.*.env"},
    {"env_vars", "meshes.*.env"},
    {"cwd", "meshes.*.workdir"},
    {"working_dir", "meshes.*.workdir"},
    {"working_directory", "meshes.*.workdir"},
    {"chdir", "meshes.*.workdir"},
    {"wdir", "meshes.*.workdir"},
    {"container", "meshes.*.wrap"},
    {"image", "meshes.*.wrap"},
    {"gpus", "meshes.*.resources.gpus"},
    {"gpus_per_node", "meshes.*.resources.gpus"},
    {"gpus_per_task", "meshes.*.resources.gpus"},
    {"gres", "meshes.*.resources.gpus"},
    {"accelerators", "meshes.*.resources.gpus"},
    {"cpus_per_task", "meshes.*.resources.cpus"},
    {"grace_period", "meshes.*.stop.grace"},
    {"kill_timeout", "meshes.*.stop.grace"},
    {"name", "job"},
    {"job_name", "job"},
    {"time", "time_limit"},
    {"timeout", "time_limit"},
    {"walltime", "time_limit"},
    {"deadline", "time_limit"},
    {"mesh", "meshes"},
    {"tasks", "meshes"},
    {"task", "meshes"},
    {"groups", "meshes"},
    {"group", "meshes"},
    {"roles", "meshes"},
    {"resources", "meshes.*.resources"},
    {"num_nodes", "launch.local.hosts"},
    {"nnodes", "launch.local.hosts"},
    {"nodes", "launch.local.hosts"},
    {"nodes", "launch.ssh.hosts"},
    {"hosts", "launch.slurm.nodes"},
    {"nodelist", "launch.ssh.hosts"},
    {"hostfile", "launch.ssh.hosts_file"},
    {"key", "launch.ssh.identity"},
    {"identity_file", "launch.ssh.identity"},
    {"launcher", "launch"},
    {"max_restarts", "supervision.restart.max"},
    {"restarts", "supervision.restart.max"},
    {"restart_policy", "supervision.restart"},
    {"backoff_limit", "supervision.restart.max"},
    {"retries", "supervision.restart.max"},
    {"attempts", "supervision.restart.max"},
    {"interval", "supervision.restart.window"},
    {"delay", "supervision.restart.backoff"},
    {"max_delay", "supervision.restart.backoff_max"},
    {"reschedule", "supervision.reallocate"},
    {"monitor_interval", "supervision.heartbeat"},
    {"lease_timeout", "supervision.lease"},
    {"heartbeat_interval", "supervision.heartbeat"},
    {"heartbeat_timeout", "supervision.lost_after"},
};

// What other launchers want to be told and this one finds out.
constexpr std::string_view kChosen[] = {"rdzv_backend", "rdzv_endpoint", "rdzv_id",    "rdzv_conf",  "master_addr",
                                        "master_port",  "node_rank",     "standalone", "init_method"};

// "meshes.*.env" seen from "meshes.*" is `env`; seen from the top it is `env` of a mesh.
std::string seen_from(std::string_view path, std::string_view target) {
  const std::string prefix = path.empty() ? "" : text(path, ".");
  if (target.starts_with(prefix)) {
    const std::string_view relative = target.substr(prefix.size());
    if (relative.find('*') == std::string_view::npos) return text("`", relative, "`");
  }
  if (path == "meshes.*" && target.starts_with("supervision.")) return text("`", target, "`");
  constexpr std::string_view kMesh = "meshes.*.";
  if (target.starts_with(kMesh)) return text("`", target.substr(kMesh.size()), "` of a mesh");
  if (!path.empty() && target.find('.') == std::string_view::npos) return text("`", target, "` at the top level");
  return text("`", target, "`");
}

std::optional<std::string> synonym(std::string_view path, std::string_view key) {
  std::optional<std::string> elsewhere;
  for (const Synonym& candidate : kSynonyms) {
    if (candidate.theirs != key) continue;
    if (parent_path(candidate.ours) == path) return text("`", last_key(candidate.ours), "`");
    if (!elsewhere) elsewhere = seen_from(path, candidate.ours);
  }
  return elsewhere;
}

// A key that exists, but in another map.
std::optional<std::string> misplaced(std::string_view path, std::string_view key) {
  for (const KeyRow& row : all_rows()) {
    if (last_key(row.path) == key) return seen_from(path, row.path);
  }
  return std::nullopt;
}

}  // namespace

std::string suggest_key(std::string_view path, std::string_view key) {
  std::vector<std::string> known;
  for (const std::string_view sibling : keys_below(path)) known.emplace_back(sibling);
  if (known.empty() || key.size() > kLongestCompared) return "";
  const std::string name = snake(key);
  if (std::find(known.begin(), known.end(), name) != known.end()) return text("did you mean `", name, "`?");
  if (std::find(std::begin(kChosen), std::end(kChosen), name) != std::end(kChosen))
    return "leave it out: monarch chooses MASTER_ADDR and MASTER_PORT and tells each rank its place";
  if (const auto meant = synonym(path, name)) return text("did you mean ", *meant, "?");
  if (const auto meant = nearest(name, known)) return text("did you mean `", *meant, "`?");
  if (const auto meant = misplaced(path, name)) return text("did you mean ", *meant, "?");
  constexpr std::size_t kMostListed = 12;
  if (known.size() <= kMostListed) return text("the keys here are: ", join(known, ", "));
  return text("`monarch explain", path.empty() ? "" : " ", path, "` lists the keys here");
}

std::string as_program_list(std::string_view command_line) {
  constexpr std::size_t kLongestRepeated = 120;
  if (command_line.size() > kLongestRepeated) return "";
  const bool shell = command_line.find_first_of("|&;<>()$`\\\"'*?#~={}[]!\n:,%@") != std::string_view::npos;
  std::vector<std::string> words;
  std::string_view rest = command_line;
  while (true) {
    const std::size_t begin = rest.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    const std::size_t length = std::min(rest.find_first_of(" \t\n"), rest.size());
    words.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (words.empty()) return "";
  if (!shell) return text("[", join(words, ", "), "]");
  std::string quoted;
  for (const char c : command_line) {
    if (c == '\'') quoted.push_back(c);  // YAML doubles it within single quotes
    quoted.push_back(c);
  }
  return text("[/bin/sh, -c, '", quoted, "']");
}

}  // namespace monarch
