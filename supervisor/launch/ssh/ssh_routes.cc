#include "supervisor/launch/ssh/ssh_routes.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "supervisor/launch/ssh/ssh_config.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::uint16_t kPort = 22;
constexpr char kGlobalKnownHosts[] = "/etc/ssh/ssh_known_hosts";

// A host as it was written somewhere.
struct Written {
  std::string name;
  std::string address;
  std::string user;
  std::uint16_t port = 0;
  std::string host_key;
};

// "[user@]host[:port]", an IPv6 address in brackets.
Result<Written> parse_jump(const std::string& jump) {
  Written written;
  std::string rest = jump;
  if (const std::size_t at = rest.rfind('@'); at != std::string::npos) {
    written.user = rest.substr(0, at);
    rest.erase(0, at + 1);
  }
  std::string port;
  if (const std::size_t end = rest.find(']'); !rest.empty() && rest[0] == '[' && end != std::string::npos) {
    if (end + 1 < rest.size() && rest[end + 1] == ':') port = rest.substr(end + 2);
    rest = rest.substr(1, end - 1);
  } else if (std::count(rest.begin(), rest.end(), ':') == 1) {
    port = rest.substr(rest.find(':') + 1);
    rest.erase(rest.find(':'));
  }
  if (!port.empty()) {
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), written.port);
    if (error != std::errc() || stop != port.data() + port.size() || written.port == 0) {
      return Error{ErrorCode::kInvalid, text("ProxyJump ", jump, ": `", port, "` is no port")};
    }
  }
  written.name = rest;
  written.address = rest;
  return written;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void add(std::vector<std::string>& files, const std::string& file) {
  if (!file.empty() && std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
}

class Router {
 public:
  Router(const LaunchSsh& launch, const SshUser& user, std::optional<SshConfig> config)
      : launch_(launch), user_(user), config_(std::move(config)), identities_(identities_of(launch)) {}

  Result<SshLauncherHost> host(const SshHost& host) const {
    std::vector<std::string> jumps;
    MONARCH_ASSIGN(SshTarget last, target({.name = host.name,
                                           .address = host.address,
                                           .user = host.user,
                                           .port = host.port.value_or(0),
                                           .host_key = host.host_key},
                                          jumps));
    SshLauncherHost out{.name = host.name};
    if (launch_.jump.empty()) {
      for (const std::string& jump : jumps) {
        MONARCH_ASSIGN(const Written written, parse_jump(jump));
        MONARCH_TRY(add_jump(out.route, written));
      }
    }
    for (const SshJump& jump : launch_.jump) {
      MONARCH_TRY(
          add_jump(out.route,
                   {.name = jump.address, .address = jump.address, .user = jump.user, .port = jump.port.value_or(0)}));
    }
    out.route.push_back(std::move(last));
    return out;
  }

 private:
  Status add_jump(SshRoute& route, const Written& written) const {
    std::vector<std::string> jumps;
    MONARCH_ASSIGN(SshTarget jump, target(written, jumps));
    if (!jumps.empty()) {
      return Error{ErrorCode::kInvalid, text("the jump host ", written.name, " has a ProxyJump of its own (",
                                             join(jumps, ","), "); list the whole way in `jump`")};
    }
    route.push_back(std::move(jump));
    return {};
  }

  Result<SshTarget> target(const Written& written, std::vector<std::string>& jumps) const {
    SshConfigAnswer file;
    if (config_) {
      MONARCH_ASSIGN(file, look_up(*config_, written.address, user_.home));
    }
    const auto first = [](const std::string& a, const std::string& b) { return a.empty() ? b : a; };
    SshTarget target;
    target.name = written.name;
    target.address = first(file.host_name, written.address);
    target.port = written.port != 0 ? written.port : file.port != 0 ? file.port : kPort;
    target.user = first(first(written.user, file.user), user_.name);
    target.agent_socket = user_.agent_socket;
    for (const std::string& identity : identities_) add(target.identities, identity);
    for (const std::string& identity : file.identities) add(target.identities, identity);
    for (const std::string& certificate : file.certificates) add(target.certificates, certificate);
    target.identities_only = file.identities_only;
    if (file.known_hosts.empty()) add(target.known_hosts, launch_.known_hosts);
    for (const std::string& known : file.known_hosts) add(target.known_hosts, known);
    add(target.known_hosts, kGlobalKnownHosts);
    target.host_key = written.host_key;
    target.accept_new_host_keys = user_.accept_new_host_keys;
    target.connect_timeout = launch_.connect_timeout;
    if (const auto objection = objection_to(target)) return Error{ErrorCode::kInvalid, *objection};
    jumps = file.jumps;
    return target;
  }

  const LaunchSsh& launch_;
  const SshUser& user_;
  std::optional<SshConfig> config_;
  std::vector<std::string> identities_;
};

}  // namespace

SshUser SshUser::of_this_process() {
  SshUser user{.home = variable("HOME"), .agent_socket = variable("SSH_AUTH_SOCK")};
  const passwd* entry = ::getpwuid(::geteuid());
  if (entry == nullptr) return user;
  user.name = entry->pw_name;
  if (user.home.empty()) user.home = entry->pw_dir;
  return user;
}

std::vector<std::string> identities_of(const LaunchSsh& launch) {
  // What the spec means that names none, as `explain` says, and what OpenSSH has besides.
  constexpr std::string_view kDefault = "/.ssh/id_ed25519";
  if (!launch.identity.ends_with(kDefault)) return {launch.identity};
  const std::string home = launch.identity.substr(0, launch.identity.size() - kDefault.size());
  std::vector<std::string> found;
  for (const std::string_view name : {kDefault, std::string_view("/.ssh/id_ecdsa"), std::string_view("/.ssh/id_rsa")}) {
    std::string path = text(home, name);
    const UniqueFd there(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (there.valid()) found.push_back(std::move(path));
  }
  return found.empty() ? std::vector<std::string>{launch.identity} : found;
}

Result<std::vector<SshLauncherHost>> ssh_routes(const LaunchSsh& launch, const SshUser& user) {
  // Whatever is refused, it is what the spec or that file says.
  const auto refused = [](const Error& error) { return Error{ErrorCode::kInvalid, error.message}; };
  std::optional<SshConfig> config;
  if (launch.config) {
    auto loaded = load_ssh_config(*launch.config, user.home);
    if (!loaded.ok()) return refused({loaded.error().code, text("launch.ssh.config: ", loaded.error().message)});
    config = std::move(*loaded);
  }
  const Router router(launch, user, std::move(config));
  std::vector<SshLauncherHost> hosts;
  for (const SshHost& host : launch.hosts) {
    auto routed = router.host(host);
    if (!routed.ok()) return refused(routed.error());
    hosts.push_back(std::move(*routed));
  }
  return hosts;
}

Result<std::vector<SshLauncherHost>> ssh_routes(const JobSpec& spec, const SshUser& user) {
  const auto* ssh = spec.launch.as<LaunchSsh>();
  if (ssh == nullptr) return Error{ErrorCode::kInvalid, "its spec does not say how to reach its hosts by SSH"};
  return ssh_routes(*ssh, user);
}

}  // namespace monarch
