#include "supervisor/spec/build_launch.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/spec/check_references.h"
#include "supervisor/spec/hostlist.h"
#include "supervisor/spec/key_path.h"
#include "supervisor/spec/network_names.h"
#include "supervisor/spec/ssh_hosts.h"
#include "supervisor/spec/values.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kIdentity = "~/.ssh/id_ed25519";
constexpr std::string_view kKnownHosts = "~/.ssh/known_hosts";

void check_one_launcher(const YamlNode& root, Report& report) {
  const YamlNode* launch = value_of(&root, "launch");
  if (launch == nullptr || !launch->is(YamlNode::Kind::kMap)) return;
  std::vector<std::string> written;
  for (const std::string_view name : {"local", "ssh", "slurm"}) {
    if (value_of(launch, name) != nullptr) written.emplace_back(name);
  }
  if (written.size() <= 1 && !launch->keys.empty()) return;
  report.error(
      "E0105", root.find_key("launch")->place,
      {.message = text("`launch` names ", written.empty() ? "no launcher" : join(written, " and ")),
       .label = "exactly one of local, ssh and slurm is needed",
       .help = written.empty() ? "`launch: {local: {}}` runs on virtual hosts of this machine" : "keep one of them"});
}

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

LaunchLocal build_local(const YamlNode* local, Report& report) {
  LaunchLocal out;
  out.hosts = integer_of(local, "hosts");
  if (out.hosts == 0U) out.hosts.reset();  // refused by the schema
  out.spares = spares_of(local);
  out.prepare = prepare_of(local, report);
  return out;
}

std::optional<SlurmAllocation> allocation_of(const YamlNode* slurm, Report& report) {
  const YamlNode* allocation = value_of(slurm, "allocation");
  const auto job = integer_of(allocation, "job");
  const YamlNode* nodes = nonempty_scalar_of(allocation, "nodes");
  if (!job || *job == 0 || nodes == nullptr) return std::nullopt;  // refused by the schema, or not there
  auto names = expand_hostlist(nodes->text);
  if (names.ok()) return SlurmAllocation{.job = *job, .nodes = std::move(*names)};
  report.error("E0208", nodes->place,
               {.message = text("`launch.slurm.allocation.nodes`: ", names.error().message),
                .label = "",
                .help = "write it as $SLURM_JOB_NODELIST has it, or leave `allocation` out"});
  return std::nullopt;
}

// WARNING: sbatch takes "node0[1-3]" in --exclude, and what is no such list it takes for a name (sbatch(1)).
SlurmRequest request_of(const YamlNode* slurm, Report& report) {
  SlurmRequest out{.partition = text_of(slurm, "partition").value_or(""),
                   .account = text_of(slurm, "account").value_or(""),
                   .qos = text_of(slurm, "qos").value_or(""),
                   .constraint = text_of(slurm, "constraint").value_or("")};
  const Duration time = duration_or(slurm, "time", Duration::zero());
  if (time > Duration::zero()) out.time = time;
  out.exclude = texts_of(slurm, "exclude");
  out.options = texts_of(slurm, "options");
  const YamlNode* options = value_of(slurm, "options");
  for (std::size_t i = 0; i < out.options.size(); ++i) {
    if (out.options[i].starts_with('-')) continue;
    report.error("E0208", options->items[i].place,
                 {.message = text("`launch.slurm.options` takes options of sbatch, not `", out.options[i], "`"),
                  .label = "starts with no `-`",
                  .help = "write an option and its value as one word: `--mail-type=FAIL`"});
  }
  return out;
}

LaunchSlurm build_slurm(const YamlNode* slurm, Report& report) {
  LaunchSlurm out;
  out.nodes = integer_of(slurm, "nodes");
  if (out.nodes == 0U) out.nodes.reset();  // refused by the schema
  out.spares = spares_of(slurm);
  out.prepare = prepare_of(slurm, report);
  out.allocation = allocation_of(slurm, report);
  out.request = request_of(slurm, report);
  if (const auto count = integer_of(slurm, "replacements")) out.replacements = *count;
  out.queue_limit = duration_or(slurm, "queue_limit", out.queue_limit);
  if (const auto count = integer_of(slurm, "own_steps")) out.own_steps = *count;
  out.warn = duration_or(slurm, "warn", out.warn);
  for (const OnPreempt action : {OnPreempt::kRequeue, OnPreempt::kSuccessor}) {
    if (text_of(slurm, "on_preempt") == to_text(action)) out.on_preempt = action;
  }
  return out;
}

class SshBuilder {
 public:
  SshBuilder(const YamlNode& ssh, Place key, const PathBases& bases, Report& report)
      : ssh_(ssh), key_(key), bases_(bases), report_(report) {}

  LaunchSsh build() {
    LaunchSsh out;
    const SshDefaults defaults{.user = user(), .port = port()};
    Report nobody;  // the schema's check has told what is wrong with them
    if (const YamlNode* hosts = value_of(&ssh_, "hosts")) {
      out.hosts = read_ssh_hosts(*hosts, "launch.ssh.hosts", defaults, nobody);
    }
    if ((value_of(&ssh_, "hosts") == nullptr) == (value_of(&ssh_, "hosts_file") == nullptr)) {
      report_.error("E0101", key_,
                    {.message = "`launch.ssh` needs `hosts` or `hosts_file`, and not both",
                     .label = "",
                     .help = value_of(&ssh_, "hosts") == nullptr ? "add `hosts: node[01-04]`" : "keep one of them"});
    }
    out.spares = spares_of(&ssh_);
    out.prepare = prepare_of(&ssh_, report_);
    out.identity = path("identity", kIdentity);
    out.known_hosts = path("known_hosts", kKnownHosts);
    if (text_of(&ssh_, "config").value_or("none") != "none") out.config = path("config", "");
    read_jumps(out);
    out.connect_timeout = duration_or(&ssh_, "connect_timeout", out.connect_timeout);
    out.parallel = integer_of(&ssh_, "parallel").value_or(out.parallel);
    out.worker = worker();
    return out;
  }

 private:
  std::string user() {
    const YamlNode* node = nonempty_scalar_of(&ssh_, "user");
    if (node == nullptr || is_user_name(node->text)) return node == nullptr ? "" : node->text;
    report_.error("E0218", node->place,
                  {.message = text("`launch.ssh.user` takes the name of a user, not `", node->text, "`"),
                   .label = "letters, digits, `.`, `-` and `_`, a letter first",
                   .help = ""});
    return "";
  }

  std::optional<std::uint16_t> port() const {
    const auto number = integer_of(&ssh_, "port");
    if (!number || *number == 0 || *number > 65'535) return std::nullopt;  // refused by the schema
    return static_cast<std::uint16_t>(*number);
  }

  std::string path(std::string_view key, std::string_view usual) {
    const YamlNode fallback{.kind = YamlNode::Kind::kScalar, .text = std::string(usual)};
    const YamlNode* node = nonempty_scalar_of(&ssh_, key);
    return local_path(node == nullptr ? fallback : *node, text("launch.ssh.", key), bases_, report_).value_or("");
  }

  void read_jumps(LaunchSsh& out) {
    const YamlNode* list = value_of(&ssh_, "jump");
    if (list == nullptr || !list->is(YamlNode::Kind::kList)) return;
    for (const YamlNode& item : list->items) {
      if (!item.is(YamlNode::Kind::kScalar) || item.text.empty()) continue;
      if (auto jump = read_jump(item.text)) {
        out.jump.push_back(std::move(*jump));
        continue;
      }
      report_.error("E0217", item.place,
                    {.message = text("`launch.ssh.jump` takes hosts to go through, not `", item.text, "`"),
                     .label = "not a host",
                     .help = "write `login1`, `alice@login1` or `alice@login1:2222`"});
    }
  }

  std::optional<std::string> worker() {
    const YamlNode* node = nonempty_scalar_of(&ssh_, "worker");
    if (node == nullptr || node->text == "auto") return std::nullopt;
    if (node->text.front() == '/') return node->text;
    report_.error("E0220", node->place,
                  {.message = text("`launch.ssh.worker` takes a whole path, not `", node->text, "`"),
                   .label = "starts with no `/`",
                   .help = "it is looked for on each host, where this folder need not exist; or write `auto`"});
    return std::nullopt;
  }

  const YamlNode& ssh_;
  Place key_;
  const PathBases& bases_;
  Report& report_;
};

}  // namespace

std::optional<std::string> local_path(const YamlNode& node, const std::string& key, const PathBases& bases,
                                      Report& report) {
  const std::string& written = node.text;
  const std::size_t slash = std::min(written.find('/'), written.size());
  if (written.starts_with('~') && slash == 1) {
    return bases.home.empty()
               ? written
               : (std::filesystem::path(bases.home) / written.substr(std::min<std::size_t>(2, written.size())))
                     .lexically_normal()
                     .string();
  }
  if (written.starts_with('~') || written.starts_with('$')) {
    report.error("E0220", node.place,
                 {.message = text("`", key, "` starts with `", written.substr(0, slash), "`"),
                  .label = "is not expanded",
                  .help = "write the whole path, one below `~/`, or one relative to the spec's folder"});
    return std::nullopt;
  }
  return (std::filesystem::path(bases.directory) / written).lexically_normal().string();
}

Launch build_launch(const YamlNode& root, const PathBases& bases, Report& report) {
  check_one_launcher(root, report);
  const YamlNode* launch = value_of(&root, "launch");
  const YamlNode* ssh = value_of(launch, "ssh");
  const YamlNode* slurm = value_of(launch, "slurm");
  const bool local = value_of(launch, "local") != nullptr;
  if (slurm != nullptr && slurm->is(YamlNode::Kind::kMap) && ssh == nullptr && !local) {
    return build_slurm(slurm, report);
  }
  if (ssh == nullptr || !ssh->is(YamlNode::Kind::kMap)) return build_local(value_of(launch, "local"), report);
  LaunchSsh built = SshBuilder(*ssh, launch->find_key("ssh")->place, bases, report).build();
  if (value_of(launch, "local") != nullptr) return build_local(value_of(launch, "local"), report);
  return built;
}

void check_launcher_built(const JobSpec& job, const YamlNode& root, Report& report) {
  if (!std::holds_alternative<LaunchSlurm>(job.launch) || !job.workspace) return;
  const YamlKey* key = root.find_key("workspace");
  report.error(
      "E0401", key == nullptr ? root.place : key->place,
      {.message = "this build cannot do that yet: `workspace` with `launch: slurm`",
       .label = "is not copied to nodes of Slurm",
       .help = "leave `workspace` out: ranks begin in the spec's folder, on a file system that the nodes share"});
}

namespace {

// The key that says how large the pool is, where it is written, and how messages put it.
struct PoolKey {
  std::string path;
  std::string called;  // in messages
  const YamlNode* node = nullptr;
  std::string_view verb;      // between that and the number
  bool counts = false;        // it is a number, that of the hosts
  std::string_view one_host;  // "host", "node"
};

PoolKey pool_key(const JobSpec& job, const YamlNode& root) {
  const YamlNode* launcher = value_of(value_of(&root, "launch"), launcher_name(job.launch));
  const std::string path = text("launch.", launcher_name(job.launch), ".");
  if (const auto* slurm = std::get_if<LaunchSlurm>(&job.launch)) {
    const auto key = text('`', path, "nodes`");
    if (!slurm->allocation) return {path + "nodes", key, value_of(launcher, "nodes"), "is", true, "node"};
    // Nobody writes that key by hand.
    const YamlNode* nodes = value_of(value_of(launcher, "allocation"), "nodes");
    return {path + "allocation", text("job ", slurm->allocation->job, " of Slurm"), nodes, "has", false, "node"};
  }
  const bool ssh = std::holds_alternative<LaunchSsh>(job.launch);
  return {path + "hosts", text('`', path, "hosts`"), value_of(launcher, "hosts"), ssh ? "has" : "is", !ssh, "host"};
}

}  // namespace

void check_hosts_suffice(const JobSpec& job, const YamlNode& root, Report& report) {
  std::uint64_t needed = 0;
  for (const MeshSpec& mesh : job.meshes) needed += mesh.like ? 0 : mesh.hosts();
  const std::uint64_t all = needed + job.spares();
  const std::uint64_t pool = job.pool_size() - job.hosts_on_request();  // nodes that may never come do not count
  const PoolKey key = pool_key(job, root);
  Report wrong;
  if (std::holds_alternative<LaunchSsh>(job.launch) && key.node != nullptr) {
    (void)read_ssh_hosts(*key.node, key.path, {}, wrong);
  }
  if (wrong.failed()) return;  // and reported: how many there are is not known
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
    if (std::holds_alternative<LaunchSlurm>(job.launch) && !key.counts)
      help += text(" (sbatch or salloc -N ", all, ")");
    if (!key.counts && needed <= pool) help += text(", or `spares: ", pool - needed, "`");
    report.error(
        "E0304", key.node->place,
        {.message = text("the job needs ", counted(all, key.one_host), ", and ", key.called, " ", key.verb, " ", pool),
         .label = label,
         .help = std::move(help)});
  }
}

}  // namespace monarch
