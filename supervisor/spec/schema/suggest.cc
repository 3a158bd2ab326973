#include "supervisor/spec/schema/suggest.h"

#include <algorithm>
#include <cctype>

#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/schema.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestCompared = 64;  // longer words are no slips

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cells((a.size() + 1) * width);
  const auto cell = [&](std::size_t i, std::size_t j) -> std::size_t& { return cells[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) cell(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cell(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = cell(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      cell(i, j) = std::min({cell(i - 1, j) + 1, cell(i, j - 1) + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cell(i, j) = std::min(cell(i, j), cell(i - 2, j - 2) + 1);
    }
  }
  return cell(a.size(), b.size());
}

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

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kLongestCompared) return std::nullopt;
  const std::size_t allowed = word.size() <= 2 ? 0 : std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  std::size_t best_distance = allowed + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

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
