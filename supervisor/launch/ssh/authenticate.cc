#include "supervisor/launch/ssh/authenticate.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "supervisor/launch/ssh/ssh_agent.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kKeyFileBytes = 64U << 10U;  // a larger file is no key

// Of one attempt.
enum class Login : std::uint8_t { kIn, kRefused, kStuck };

struct Tried {
  Login login = Login::kRefused;
  std::string what;  // "ssh-agent at /run/agent (2 keys): refused"
  WaitEnd waited = WaitEnd::kReady;
};

std::string methods_text(int methods) {
  const std::pair<unsigned, const char*> names[] = {{SSH_AUTH_METHOD_PUBLICKEY, "publickey"},
                                                    {SSH_AUTH_METHOD_PASSWORD, "password"},
                                                    {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"},
                                                    {SSH_AUTH_METHOD_HOSTBASED, "hostbased"},
                                                    {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi-with-mic"}};
  std::vector<std::string> out;
  for (const auto& [bit, name] : names) {
    if ((static_cast<unsigned>(methods) & bit) != 0) out.emplace_back(name);
  }
  return out.empty() ? "no method" : join(out, ", ");
}

template <class Call>
Tried attempt(RawSession& session, const Patience& patience, std::string what, Call call) {
  const auto answer = session.until_done(SSH_AUTH_AGAIN, patience, std::move(call));
  if (const auto* end = std::get_if<WaitEnd>(&answer)) return {Login::kStuck, std::move(what), *end};
  switch (std::get<int>(answer)) {
    case SSH_AUTH_SUCCESS: return {Login::kIn, ""};
    case SSH_AUTH_DENIED: return {Login::kRefused, text(what, ": refused")};
    case SSH_AUTH_PARTIAL:
      return {Login::kRefused, text(what, ": accepted, but the server wants another method as well")};
    default: break;
  }
  // An agent that goes wrong does not end the session; the server's hanging up does.
  if (session.connected()) return {Login::kRefused, text(what, ": ", session.error())};
  return {Login::kStuck, text(what, ": ", session.error())};
}

Tried try_agent(const SshTarget& target, RawSession& session, const Patience& patience) {
  auto door = open_agent(target.agent_socket, patience);
  if (!door.ok()) return {Login::kRefused, door.error().message};
  const std::string what =
      text("ssh-agent at ", target.agent_socket, " (", door->keys, door->keys == 1 ? " key)" : " keys)");
  if (door->keys == 0) return {Login::kRefused, text(what, ": empty; ssh-add loads one")};
  const auto watch = AgentWatch::start(door->socket.get(), patience);
  if (!watch.ok()) return {Login::kRefused, watch.error().message};
  if (ssh_set_agent_socket(session.handle(), door->socket.get()) != SSH_OK) {
    return {Login::kRefused, text(what, ": ", session.error())};
  }
  (void)door->socket.release();  // libssh closes it with the session
  return attempt(session, patience, what, [&] { return ssh_userauth_agent(session.handle(), nullptr); });
}

struct KeyText {
  std::string bytes;
  ~KeyText() { ::explicit_bzero(bytes.data(), bytes.size()); }
};

// As OpenSSH wants it: nobody else may read it.
Status read_key(const std::string& path, KeyText& key) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return errno_error(text("key file ", path), errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(text("key file ", path), errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kInvalid, text("key file ", path, ": no regular file")};
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return Error{ErrorCode::kInvalid, text("key file ", path, ": belongs to user ", status.st_uid)};
  }
  if ((status.st_mode & 077U) != 0) {
    return Error{ErrorCode::kInvalid, text("key file ", path, ": others may read it; chmod 600 ", path)};
  }
  key.bytes.resize(kKeyFileBytes);
  const ssize_t got = ::read(fd.get(), key.bytes.data(), key.bytes.size());
  if (got < 0) return errno_error(text("key file ", path), errno);
  if (static_cast<std::size_t>(got) == kKeyFileBytes) {
    return Error{ErrorCode::kInvalid, text("key file ", path, ": more than 64 KiB")};
  }
  key.bytes[static_cast<std::size_t>(got)] = '\0';
  return {};
}

// WARNING: without a callback OpenSSL asks for the passphrase of a PEM file on the terminal.
int refuse_to_ask(const char*, char*, std::size_t, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Tried try_file(const std::string& path, RawSession& session, const Patience& patience) {
  KeyText bytes;
  const Status read = read_key(path, bytes);
  if (!read.ok()) return {Login::kRefused, read.error().message};
  bool asked = false;
  ssh_key key = nullptr;
  if (ssh_pki_import_privkey_base64(bytes.bytes.c_str(), nullptr, refuse_to_ask, &asked, &key) != SSH_OK) {
    return {Login::kRefused, text("key file ", path,
                                  asked ? ": has a passphrase; load it into ssh-agent by ssh-add"
                                        : ": no private key that libssh reads")};
  }
  const std::unique_ptr<ssh_key_struct, void (*)(ssh_key)> owner(key, ssh_key_free);
  return attempt(session, patience, text("key file ", path),
                 [&] { return ssh_userauth_publickey(session.handle(), nullptr, key); });
}

SshFailure stuck(const SshTarget& target, const RawSession& session, const Tried& tried, const std::string& what) {
  SshFailure out{.failure = {.kind = LaunchFailureKind::kAuthentication, .phase = "authenticate"}};
  if (tried.waited == WaitEnd::kTimeout) out.failure.kind = LaunchFailureKind::kTimeout;
  if (tried.waited == WaitEnd::kCancelled) out.failure.kind = LaunchFailureKind::kOther;
  const std::string ended = tried.waited == WaitEnd::kReady ? text("the server hangs up (", session.error(),
                                                                   "); one with many keys in ssh-agent is "
                                                                   "cut off after a few (MaxAuthTries)")
                                                            : wait_end_text(tried.waited, target.connect_timeout);
  out.failure.message = text(what, ": ", ended, tried.what.empty() ? "" : "; tried last: ", tried.what);
  return out;
}

}  // namespace

std::optional<SshFailure> authenticate(const SshTarget& target, VerifiedSession& verified, const Patience& patience) {
  RawSession& session = verified.raw();
  const std::string what = text("logging in to ", where_text(target), " as ", target.user);
  // The answer names the methods that the server takes.
  const Tried none = attempt(session, patience, "", [&] { return ssh_userauth_none(session.handle(), nullptr); });
  if (none.login == Login::kIn) return std::nullopt;
  if (none.login == Login::kStuck) {
    SshFailure out = stuck(target, session, {Login::kStuck, "", none.waited}, what);
    if (none.waited == WaitEnd::kReady) {
      out.failure.kind = LaunchFailureKind::kClosed;
      out.failure.message = text(what, ": the server hangs up before a key was offered (", session.error(), ")");
    }
    return out;
  }
  const int methods = ssh_userauth_list(session.handle(), nullptr);

  std::vector<std::string> tried;
  const auto go_on = [&](Tried result) -> std::optional<std::optional<SshFailure>> {
    if (result.login == Login::kIn) return std::optional<SshFailure>();
    if (result.login == Login::kStuck) return stuck(target, session, result, what);
    tried.push_back(std::move(result.what));
    return std::nullopt;
  };
  if ((static_cast<unsigned>(methods) & SSH_AUTH_METHOD_PUBLICKEY) != 0) {
    if (target.agent_socket.empty()) tried.emplace_back("no ssh-agent (SSH_AUTH_SOCK is not set)");
    if (!target.agent_socket.empty()) {
      if (auto end = go_on(try_agent(target, session, patience))) return *end;
    }
    for (const std::string& path : target.identities) {
      if (auto end = go_on(try_file(path, session, patience))) return *end;
    }
  } else {
    tried.emplace_back("nothing, since monarch logs in by keys alone");
  }
  return SshFailure{.failure = {.kind = LaunchFailureKind::kAuthentication,
                                .phase = "authenticate",
                                .message = text(what, ": no key was accepted; the server takes ", methods_text(methods),
                                                "; tried: ", join(tried, "; "))}};
}

}  // namespace monarch
