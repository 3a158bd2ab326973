// What a spec says of machines that SSH reaches: its keys, and what is built of them.

#include "supervisor/launch/ssh/ssh_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/launchers.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/hosts/ssh_hosts.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr KeyRow kSshRows[] = {
    {.path = "launch.ssh", .type = ValueType::kMap, .doc = "machines reached over SSH"},
    {.path = "launch.ssh.hosts",
     .type = ValueType::kHosts,
     .doc = "the pool: node[01-20], or a list of names or {name, address, user, port, host_key}"},
    {.path = "launch.ssh.hosts_file",
     .type = ValueType::kText,
     .least = 1,
     .doc = "a file with one host per line, instead"},
    MONARCH_SPARES_ROWS("launch.ssh", "hosts"),
    {.path = "launch.ssh.user", .type = ValueType::kText, .least = 1, .doc = "default: your own name"},
    {.path = "launch.ssh.port",
     .type = ValueType::kInteger,
     .default_value = "22",
     .least = 1,
     .most = 65'535,
     .doc = "TCP port"},
    {.path = "launch.ssh.identity",
     .type = ValueType::kText,
     .default_value = "~/.ssh/id_ed25519",
     .least = 1,
     .doc = "private key"},
    {.path = "launch.ssh.known_hosts",
     .type = ValueType::kText,
     .default_value = "~/.ssh/known_hosts",
     .least = 1,
     .doc = "host keys that are trusted"},
    {.path = "launch.ssh.config",
     .type = ValueType::kText,
     .default_value = "none",
     .least = 1,
     .doc = "an ssh_config to read, or none"},
    {.path = "launch.ssh.jump", .type = ValueType::kList, .default_value = "[]", .doc = "hosts to go through"},
    {.path = "launch.ssh.jump.[]", .type = ValueType::kText, .least = 1},
    {.path = "launch.ssh.connect_timeout",
     .type = ValueType::kDuration,
     .default_value = "10s",
     .least = 100,
     .doc = "per host"},
    {.path = "launch.ssh.parallel",
     .type = ValueType::kInteger,
     .default_value = "64",
     .least = 1,
     .most = 1024,
     .doc = "sessions at a time"},
    {.path = "launch.ssh.worker",
     .type = ValueType::kText,
     .default_value = "auto",
     .least = 1,
     .doc = "path of an installed monarch-worker; auto: it is copied"},
};

constexpr KeyHelp kSshHelp[] = {
    {"launch.ssh", "{hosts: \"node[01-20]\", spares: 2}"},
    {"launch.ssh.hosts", "\"node[01-20]\"",
     "A compressed list needs quotes if it starts with a bracket. A host may also be {name: gpu2, address: 10.0.0.7, "
     "user: bob, port: 2222, host_key: \"SHA256:...\"}: `name` is how the job calls it, `address` what is "
     "dialled, "
     "and of a host with `host_key` no other key is taken."},
    {"launch.ssh.hosts_file", "hosts.txt",
     "A line may also be a compressed list, and behind a single host may stand address=, user= and port=. The hosts "
     "become part of the job when it starts; what the file says later does not change it."},
    MONARCH_SPARES_HELP("launch.ssh", "2", "2m"),
    {"launch.ssh.user", "alice"},
    {"launch.ssh.port", "2222"},
    {"launch.ssh.identity", "~/.ssh/cluster",
     "Tried first, by ssh-agent if that has its key, else from the file; the agent's other keys come after it. "
     "Where nothing is written, ~/.ssh/id_ecdsa and ~/.ssh/id_rsa are tried as well, as ssh does. Relative paths start "
     "from the spec's folder. There are no passwords."},
    {"launch.ssh.known_hosts", "~/.ssh/cluster_hosts"},
    {"launch.ssh.config", "~/.ssh/config",
     "HostName, User, Port, IdentityFile, CertificateFile, IdentitiesOnly, UserKnownHostsFile, ProxyJump and Include "
     "are read, and other keywords are passed over; what the spec says of a host counts first. Match (but for Match "
     "all), and ProxyCommand "
     "for a host of the job, are refused."},
    {"launch.ssh.jump", "[login1]",
     "Each is HOST, USER@HOST or USER@HOST:PORT; the first is dialled from here, each next one through those before "
     "it. Hosts behind them do not know whom to call back: unless control says something else, control.via is ssh."},
    {"launch.ssh.connect_timeout", "30s"},
    {"launch.ssh.parallel", "16"},
    {"launch.ssh.worker", "/opt/monarch/bin/monarch-worker"},
};

constexpr std::string_view kIdentity = "~/.ssh/id_ed25519";
constexpr std::string_view kKnownHosts = "~/.ssh/known_hosts";

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
    out.worker = worker_of(&ssh_, "launch.ssh", report_);
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

  const YamlNode& ssh_;
  Place key_;
  const PathBases& bases_;
  Report& report_;
};

Launch build_ssh(const YamlNode* ssh, Place key, const PathBases& bases, Report& report) {
  return SshBuilder(*ssh, key, bases, report).build();
}

PoolKey ssh_pool_key(const JobSpec&, const YamlNode* node) { return pool_by_name("launch.ssh", node); }

std::vector<std::string> ssh_notes(const JobSpec& job) {
  if (job.control.via != ControlVia::kSsh || job.control.address.empty()) return {};
  return {text("control.address: ", job.control.address,
               " is not used: by `control.via: ssh` hosts reach the supervisor through the SSH session")};
}

}  // namespace

const LauncherSpec& ssh_spec() {
  static const LauncherSpec kSpec{.name = "ssh",
                                  .flag_words = "ssh:HOSTS",
                                  .flag_key = "hosts",
                                  .rows = kSshRows,
                                  .help = kSshHelp,
                                  .build = build_ssh,
                                  .pool_key = ssh_pool_key,
                                  .check = [](const JobSpec&, const YamlNode&, Report&) {},
                                  .notes = ssh_notes};
  return kSpec;
}

}  // namespace monarch
