#include "supervisor/spec/job/build_launch.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/hosts/ssh_hosts.h"
#include "supervisor/spec/job/check_references.h"
#include "supervisor/spec/schema/key_path.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Nothing: none is written.
const LauncherSpec* written_launcher(const YamlNode* launch) {
  for (const LauncherSpec* spec : launcher_specs()) {
    if (value_of(launch, spec->name) != nullptr) return spec;
  }
  return nullptr;
}

void check_one_launcher(const YamlNode& root, Report& report) {
  const YamlNode* launch = value_of(&root, "launch");
  if (launch == nullptr || !launch->is(YamlNode::Kind::kMap)) return;
  std::vector<std::string> written;
  for (const LauncherSpec* spec : launcher_specs()) {
    if (value_of(launch, spec->name) != nullptr) written.emplace_back(spec->name);
  }
  if (written.size() <= 1 && !launch->keys.empty()) return;
  report.error(
      "E0105", root.find_key("launch")->place,
      {.message = text("`launch` names ", written.empty() ? "no launcher" : join(written, " and ")),
       .label = text("exactly one of ", launcher_list(), " is needed"),
       .help = written.empty() ? "`launch: {local: {}}` runs on virtual hosts of this machine" : "keep one of them"});
}

}  // namespace

std::uint32_t spares_of(const YamlNode* launcher) {
  const YamlNode* spares = value_of(launcher, "spares");
  const bool map = spares != nullptr && spares->is(YamlNode::Kind::kMap);
  return (map ? integer_of(spares, "count") : integer_of(launcher, "spares")).value_or(0);
}

PrepareSpec prepare_of(const YamlNode* launcher, Report& report) {
  PrepareSpec out;
  const YamlNode* spares = value_of(launcher, "spares");
  if (spares == nullptr || !spares->is(YamlNode::Kind::kMap)) return out;
  refuse_references_of_prepare(value_of(spares, "prepare"), report);
  out.program = texts_of(spares, "prepare");
  out.timeout = duration_or(spares, "timeout", out.timeout);
  return out;
}

PoolKey pool_by_name(const std::string& path, const YamlNode* launcher) {
  const std::string key = path + ".hosts";
  PoolKey pool{.path = key,
               .called = text('`', key, '`'),
               .node = value_of(launcher, "hosts"),
               .verb = "has",
               .one_host = "host"};
  Report wrong;
  if (pool.node != nullptr) (void)read_ssh_hosts(*pool.node, key, {}, wrong);
  if (wrong.failed()) pool.node = nullptr;  // and reported: how many there are is not known
  return pool;
}

std::optional<std::string> worker_of(const YamlNode* launcher, const std::string& path, Report& report) {
  const YamlNode* node = nonempty_scalar_of(launcher, "worker");
  if (node == nullptr || node->text == "auto") return std::nullopt;
  if (node->text.front() == '/') return node->text;
  report.error("E0220", node->place,
               {.message = text('`', path, ".worker` takes a whole path, not `", node->text, "`"),
                .label = "starts with no `/`",
                .help = "it is looked for on each host, where this folder need not exist; or write `auto`"});
  return std::nullopt;
}

Launch build_launch(const YamlNode& root, const PathBases& bases, Report& report) {
  check_one_launcher(root, report);
  const YamlNode* launch = value_of(&root, "launch");
  const LauncherSpec* usual = launcher_specs().front();
  const LauncherSpec* written = written_launcher(launch);
  const YamlNode* node = written == nullptr ? nullptr : value_of(launch, written->name);
  if (written == nullptr || written == usual || !node->is(YamlNode::Kind::kMap)) {
    return usual->build(written == usual ? node : nullptr, {}, bases, report);
  }
  return written->build(node, launch->find_key(written->name)->place, bases, report);
}

void check_hosts_suffice(const JobSpec& job, const YamlNode& root, Report& report) {
  std::uint64_t needed = 0;
  for (const MeshSpec& mesh : job.meshes) needed += mesh.like ? 0 : mesh.hosts();
  const std::uint64_t all = needed + job.spares();
  const std::uint64_t pool = job.pool_size() - job.hosts_on_request();  // nodes that may never come do not count
  const LaunchFacts& launch = job.launch.facts();
  const PoolKey key = find_launcher_spec(launch.name)->pool_key(job, value_of(value_of(&root, "launch"), launch.name));
  const std::string label = text(counted(needed, key.one_host), " for the meshes, ", counted(job.spares(), "spare"));
  if (all > limits::kHostsPerJob) {
    report.error(
        "E0307", root.find_key("meshes")->place,
        {.message = text("the job needs ", counted(all, "host"), "; it can have at most ", limits::kHostsPerJob),
         .label = label,
         .help = "`per_host` puts more ranks on one host"});
  } else if (key.node != nullptr && pool < all) {
    const std::uint64_t lacking = all - pool;
    std::string help = text("`", last_key(key.path), ": ", all, "` would work");
    if (!key.counts) help = text(counted(lacking, key.one_host), " more would work");
    if (!key.more_by.empty()) help += text(" (", key.more_by, all, ")");
    if (!key.counts && needed <= pool) help += text(", or `spares: ", pool - needed, "`");
    report.error(
        "E0304", key.node->place,
        {.message = text("the job needs ", counted(all, key.one_host), ", and ", key.called, " ", key.verb, " ", pool),
         .label = label,
         .help = std::move(help)});
  }
}

}  // namespace monarch
