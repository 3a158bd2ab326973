// What a spec says of hosts on which a command opens a shell: its keys, and what is built of them.

#include "supervisor/launch/command/command_spec.h"

#include "supervisor/launch/launchers.h"
#include "supervisor/spec/hosts/ssh_hosts.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kHostWord = "$(host)";

constexpr KeyRow kCommandRows[] = {
    {.path = "launch.command", .type = ValueType::kMap, .doc = "hosts on which a command opens a shell"},
    {.path = "launch.command.hosts",
     .type = ValueType::kHosts,
     .required = true,
     .doc = "the pool: node[01-20], or a list of names or {name, address}"},
    {.path = "launch.command.exec",
     .type = ValueType::kList,
     .least = 1,
     .required = true,
     .doc = "the command: its standard input and output are a shell on the host; $(host) is the host's address"},
    {.path = "launch.command.exec.[]", .type = ValueType::kText, .least = 1},
    MONARCH_SPARES_ROWS("launch.command", "hosts"),
    {.path = "launch.command.connect_timeout",
     .type = ValueType::kDuration,
     .default_value = "10s",
     .least = 100,
     .doc = "until the shell answers, per host"},
    {.path = "launch.command.parallel",
     .type = ValueType::kInteger,
     .default_value = "64",
     .least = 1,
     .most = 1024,
     .doc = "commands at a time"},
    {.path = "launch.command.worker",
     .type = ValueType::kText,
     .default_value = "auto",
     .least = 1,
     .doc = "path of an installed monarch-worker; auto: it is copied"},
};

constexpr KeyHelp kCommandHelp[] = {
    {"launch.command", "{hosts: \"node[01-20]\", exec: [ssh, -oBatchMode=yes, \"$(host)\"]}",
     "For hosts that only your own ssh reaches (certificates, Kerberos, hardware keys, ProxyCommand), and for those "
     "that no ssh does: kubectl exec -i, docker exec -i, nsenter. The command must not ask for a password."},
    {"launch.command.hosts", "\"node[01-20]\"",
     "Of {name: pod2, address: train-2-xk3} the job calls the host `name`, and $(host) stands for `address`."},
    {"launch.command.exec", "[kubectl, exec, -i, \"$(host)\", --, sh]",
     "It runs on the supervisor's machine, in the environment that the job was started in. Of ssh without a jump host "
     "hosts know where to call back; for everything else `control.address` has to say it."},
    MONARCH_SPARES_HELP("launch.command", "2", "2m"),
    {"launch.command.connect_timeout", "30s"},
    {"launch.command.parallel", "16"},
    {"launch.command.worker", "/opt/monarch/bin/monarch-worker"},
};

std::string replaced(std::string word, const std::string& host) {
  for (std::size_t at = word.find(kHostWord); at != std::string::npos; at = word.find(kHostWord, at + host.size())) {
    word.replace(at, kHostWord.size(), host);
  }
  return word;
}

// $(host) is all that is expanded; without it, all hosts would be one.
void check_exec(const YamlNode* exec, const std::vector<std::string>& words, std::size_t hosts, Report& report) {
  const std::string all = join(words, " ");
  const bool other = replaced(all, "").find("$(") != std::string::npos;
  if (exec == nullptr || words.empty() || (!other && (hosts < 2 || all.find(kHostWord) != std::string::npos))) return;
  report.error("E0215", exec->place,
               {.message = other ? "`launch.command.exec` knows $(host) and no other reference"
                                 : text("`launch.command.exec` does not say $(host), and there are ", hosts, " hosts"),
                .label = other ? "the program would get it as it is written" : "is the same command for each",
                .help = "`exec: [ssh, -oBatchMode=yes, \"$(host)\"]` reaches each by its name"});
}

Launch build_command(const YamlNode* command, Place, const PathBases&, Report& report) {
  LaunchCommand out;
  const std::vector<std::string> words = texts_of(command, "exec");
  if (const YamlNode* hosts = value_of(command, "hosts")) {
    Report nobody;  // the schema's check has told what is wrong with them
    for (const SshHost& host : read_ssh_hosts(*hosts, "launch.command.hosts", {}, nobody)) {
      CommandHost& built = out.hosts.emplace_back(CommandHost{.name = host.name, .command = {}});
      for (const std::string& word : words) built.command.push_back(replaced(word, host.address));
      if (host.user.empty() && !host.port && host.host_key.empty()) continue;
      report.error("E0107", hosts->place,
                   {.message = text("host `", host.name, "`: `user`, `port` and `host_key` are for `launch.ssh`"),
                    .label = "",
                    .help = "say it in `exec`, or in what that reads"});
    }
  }
  check_exec(value_of(command, "exec"), words, out.hosts.size(), report);
  out.spares = spares_of(command);
  out.prepare = prepare_of(command, report);
  out.connect_timeout = duration_or(command, "connect_timeout", out.connect_timeout);
  out.parallel = integer_of(command, "parallel").value_or(out.parallel);
  out.worker = worker_of(command, "launch.command", report);
  return out;
}

// What such a host cannot do.
void check_command(const JobSpec& job, const YamlNode& root, Report& report) {
  const auto refuse = [&](const YamlNode* value, std::string_view key, const char* help) {
    report.error("E0401", value == nullptr ? root.place : value->place,
                 {.message = text("this build cannot do that yet: `", key, "` with `launch: command`"),
                  .label = "",
                  .help = help});
  };
  const YamlNode* control = value_of(&root, "control");
  if (job.control.via == ControlVia::kSsh) {
    refuse(value_of(control, "via"), "control.via: ssh", "hosts call back by TCP; or `launch.ssh` leads ports back");
  }
  if (job.supervisor_on == SupervisorPlace::kFirst) {
    refuse(value_of(value_of(&root, "supervisor"), "on"), "supervisor.on: first", "write `supervisor: {on: here}`");
  }
  if (job.workspace) {
    refuse(value_of(&root, "workspace"), "workspace", "leave it out: `workdir` names a folder of the hosts");
  }
}

}  // namespace

const LauncherSpec& command_spec() {
  static const LauncherSpec kSpec{
      .name = "command",
      .flag_words = "command:HOSTS",
      .flag_key = "hosts",
      .rows = kCommandRows,
      .help = kCommandHelp,
      .build = build_command,
      .pool_key = [](const JobSpec&, const YamlNode* node) { return pool_by_name("launch.command", node); },
      .check = check_command,
      .notes = [](const JobSpec&) { return std::vector<std::string>(); }};
  return kSpec;
}

}  // namespace monarch
