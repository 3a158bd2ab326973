#include "tests/supervisor/launch/ssh/ssh_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "supervisor/launch/ssh/session/known_hosts.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr char kServer[] = "/usr/sbin/sshd";
constexpr const char* kSeparation = "/run/sshd";
constexpr Duration kStart = Duration::seconds(20);

pid_t start_command(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) (void)::dup2(null, fd);
  for (const std::string& variable : environment) (void)::putenv(const_cast<char*>(variable.c_str()));
  (void)::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

std::uint16_t free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, size) != 0 || ::getsockname(socket.get(), generic, &size) != 0) return 0;
  return ntohs(address.sin_port);
}

bool answers(int family, const sockaddr* address, socklen_t size) {
  const UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), address, size) == 0;
}

bool listens(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return answers(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return answers(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

// As root, sshd wants a folder for the half of it that has no rights. A machine that runs one has it; elsewhere each of
// ours sees one that nobody else does, and that goes with it.
std::vector<std::string> in_own_run(std::vector<std::string> command) {
  std::vector<std::string> whole = {
      "unshare", "--mount", "--", "sh", "-c", "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec \"$@\"", "sh"};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

// Until it listens, or its process has ended, or the time is up.
template <class Place>
bool comes_up(pid_t pid, const Place& place) {
  const Instant end = boot_now() + kStart;
  while (boot_now() < end) {
    if (listens(place)) return true;
    if (::waitpid(pid, nullptr, WNOHANG) == pid) return false;
    (void)::poll(nullptr, 0, 5);  // there is no event for "it listens"
  }
  return false;
}

}  // namespace

int run_command(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  const pid_t pid = start_command(command, environment);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool make_key(const std::string& path, const std::string& type, const std::string& phrase) {
  return run_command({"ssh-keygen", "-q", "-t", type, "-N", phrase, "-C", "test", "-f", path}) == 0;
}

std::string read_text(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

std::string SshServer::lacks() {
  const Status loaded = load_libssh();
  if (!loaded.ok()) return loaded.error().message;
  if (::access(kServer, X_OK) != 0) return "sshd (Debian: openssh-server)";
  if (run_command({"ssh-keygen", "-?"}) == 127) return "ssh-keygen (Debian: openssh-client)";
  const bool can = ::geteuid() != 0 || ::access(kSeparation, F_OK) == 0 || run_command(in_own_run({"true"})) == 0;
  return can ? "" : text(kSeparation, ", and the right to mount one");
}

SshServer::SshServer(const std::string& key_type, const std::string& configuration) {
  if (!make_key(folder_.path() + "/host", key_type) || !make_key(identity())) {
    failure_ = "ssh-keygen failed";
    return;
  }
  std::filesystem::copy_file(identity() + ".pub", folder_.path() + "/authorized_keys");
  folder_.write("known_hosts", "");
  for (int attempt = 0; attempt < 5; ++attempt) {
    port_ = free_port();
    if (start(configuration)) {
      folder_.write("known_hosts", text("[127.0.0.1]:", port_, " ", host_key_line(), "\n"));
      return;
    }
  }
  failure_ = "sshd does not start: " + log();
}

bool SshServer::start(const std::string& configuration) {
  const std::string& path = folder_.path();
  const std::string file =
      folder_.write("sshd_config", text(configuration, "\nPort ", port_, "\nListenAddress 127.0.0.1\nHostKey ", path,
                                        "/host\nPidFile none\nAuthorizedKeysFile ", path,
                                        "/authorized_keys\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nUseDNS no\n"
                                        "LogLevel VERBOSE\nSubsystem sftp internal-sftp\n"));
  std::vector<std::string> command = {kServer, "-D", "-f", file, "-E", path + "/log"};
  if (::geteuid() == 0 && ::access(kSeparation, F_OK) != 0) command = in_own_run(std::move(command));
  const pid_t pid = start_command(command, {});
  if (pid < 0) return false;
  if (!comes_up(pid, port_)) return false;
  children_.push_back(pid);
  return true;
}

SshServer::~SshServer() {
  for (const pid_t pid : children_) {
    (void)::kill(pid, SIGKILL);
    (void)::waitpid(pid, nullptr, 0);
  }
}

std::string SshServer::log() const { return read_text(folder_.path() + "/log"); }

std::string SshServer::host_key_line() const {
  const std::string line = read_text(folder_.path() + "/host.pub");
  return line.substr(0, line.rfind(' '));  // without the comment
}

std::string SshServer::fingerprint() const {
  const std::string scratch = folder_.write("fingerprint_hosts", "[127.0.0.1]:1 " + host_key_line() + "\n");
  const auto keys = known_keys({scratch}, "[127.0.0.1]:1");
  return keys.ok() && keys->size() == 1 ? keys->front().key.fingerprint : "";
}

std::string SshServer::known_hosts() const { return folder_.path() + "/known_hosts"; }

std::string SshServer::start_agent(const std::vector<std::string>& keys) {
  const std::string path = folder_.path() + "/agent";
  const pid_t pid = start_command({"ssh-agent", "-D", "-a", path}, {});
  if (pid < 0 || !comes_up(pid, path)) return "";
  children_.push_back(pid);
  std::vector<std::string> add = {"ssh-add", "-q"};
  add.insert(add.end(), keys.begin(), keys.end());
  if (keys.empty()) add.push_back(identity());
  return run_command(add, {"SSH_AUTH_SOCK=" + path}) == 0 ? path : "";
}

SshTarget SshServer::target() const {
  const passwd* user = ::getpwuid(::geteuid());
  SshTarget target;
  target.name = "gpu7";
  target.address = "127.0.0.1";
  target.port = port_;
  target.user = user == nullptr ? "" : user->pw_name;
  target.identities = {identity()};
  target.known_hosts = {known_hosts()};
  return target;
}

}  // namespace monarch
