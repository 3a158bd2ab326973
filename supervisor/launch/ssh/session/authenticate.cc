#include "supervisor/launch/ssh/session/authenticate.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "supervisor/launch/ssh/session/libssh_key.h"
#include "supervisor/launch/ssh/session/ssh_agent.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kOtherAgentKeys = 16;  // tried after key files; a server hangs up after 6, unless told otherwise
constexpr std::size_t kKeyFileBytes = 64U << 10U;  // a larger file is no key

// Of one attempt.
enum class Login : std::uint8_t { kIn, kRefused, kStuck };

struct Tried {
  Login login = Login::kRefused;
  std::string what;  // "ssh-agent at /run/agent (2 keys): refused"
  WaitEnd waited = WaitEnd::kReady;
  bool denied = false;  // by the server, which knows the key now
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
  // WARNING: libssh 0.10.6 goes on saying AGAIN of an agent's keys when the server has hung up.
  const auto answer = session.until_done(SSH_AUTH_AGAIN, patience, [&] {
    const int said = call();
    return said == SSH_AUTH_AGAIN && !session.connected() ? static_cast<int>(SSH_AUTH_ERROR) : said;
  });
  if (const auto* end = std::get_if<WaitEnd>(&answer)) return {Login::kStuck, std::move(what), *end};
  switch (std::get<int>(answer)) {
    case SSH_AUTH_SUCCESS: return {Login::kIn, ""};
    case SSH_AUTH_DENIED: return {Login::kRefused, text(what, ": refused"), WaitEnd::kReady, true};
    case SSH_AUTH_PARTIAL:
      return {Login::kRefused, text(what, ": accepted, but the server wants another method as well")};
    default: break;
  }
  // An agent that goes wrong does not end the session; the server's hanging up does.
  if (session.connected()) return {Login::kRefused, text(what, ": ", session.error())};
  return {Login::kStuck, text(what, ": ", session.error())};
}

// An agent, sorted by whether a key is of one of the target's files. libssh is shown those first, and the others when
// it asks again.
class Agent {
 public:
  // Nothing of it is shown where it cannot be asked; `why` tells.
  Agent(const SshTarget& target, RawSession& session, const Patience& patience) : session_(session) {
    if (target.agent_socket.empty()) {
      why_ = "no ssh-agent (SSH_AUTH_SOCK is not set)";
      return;
    }
    name_ = text("ssh-agent at ", target.agent_socket);
    auto door = open_agent(target.agent_socket, patience);
    if (!door.ok()) {
      why_ = door.error().message;
      return;
    }
    if (door->keys.empty()) why_ = text(name_, " (0 keys): empty; ssh-add loads one");
    sort(target, std::move(door->keys));
    auto proxy = AgentProxy::start(std::move(door->socket), turns(), patience);
    if (!proxy.ok()) {
      why_ = proxy.error().message;
    } else if (ssh_set_agent_socket(session.handle(), (*proxy)->socket()) != SSH_OK) {
      why_ = text(name_, ": ", session.error());
    } else {
      (*proxy)->give_socket();
      proxy_ = std::move(*proxy);
    }
  }

  const std::string& why() const { return why_; }
  bool has_own() const { return proxy_ != nullptr && !own_.empty(); }
  bool has_others() const { return proxy_ != nullptr && !others_.empty(); }
  Tried try_own(const Patience& patience) {
    Tried tried = next(patience, counted(own_.size(), "of the key files"));
    own_denied_ = tried.denied;
    return tried;
  }
  // Whether the server was offered the key of this file, and would not have it: it counts what it is offered.
  bool was_denied(const std::string& file) const { return own_denied_ && own_files_.contains(file); }
  Tried try_others(const Patience& patience) {
    const std::string first = others_.size() < all_others_ ? text("; it has ", all_others_) : "";
    return next(patience, counted(others_.size(), own_.empty() ? "" : "others") + first);
  }

 private:
  void sort(const SshTarget& target, AgentProxy::Keys keys) {
    std::map<std::string, std::string> files;
    for (const std::string& path : target.identities) files.emplace(public_key_of(path), path);
    for (AgentKey& key : keys) {
      const auto file = files.find(key.base64);
      if (file != files.end()) {
        own_files_.insert(file->second);
        own_.push_back(std::move(key));
        continue;
      }
      ++all_others_;
      if (target.identities_only || (!target.identities.empty() && others_.size() == kOtherAgentKeys)) continue;
      others_.push_back(std::move(key));
    }
  }
  // Where it is asked for nothing it has no turn.
  std::vector<AgentProxy::Keys> turns() const {
    std::vector<AgentProxy::Keys> turns;
    for (const AgentProxy::Keys& keys : {own_, others_}) {
      if (!keys.empty()) turns.push_back(keys);
    }
    return turns;
  }
  static std::string counted(std::size_t count, std::string_view which) {
    return text(count, count == 1 ? " key" : " keys", which.empty() ? "" : ", ", which);
  }
  Tried next(const Patience& patience, const std::string& which) {
    return attempt(session_, patience, text(name_, " (", which, ")"),
                   [&] { return ssh_userauth_agent(session_.handle(), nullptr); });
  }

  RawSession& session_;
  std::string name_;
  std::string why_;
  AgentProxy::Keys own_;
  std::set<std::string> own_files_;
  bool own_denied_ = false;
  AgentProxy::Keys others_;
  std::size_t all_others_ = 0;
  std::unique_ptr<AgentProxy> proxy_;
};

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

SshKey import_key(const KeyText& bytes, bool& asked) {
  ssh_key key = nullptr;
  const int done = ssh_pki_import_privkey_base64(bytes.bytes.c_str(), nullptr, refuse_to_ask, &asked, &key);
  return {done == SSH_OK ? key : nullptr, ssh_key_free};
}

// Certificates of the key before the bare key, as OpenSSH does.
Tried try_file(const std::string& path, const std::vector<std::string>& certificates, RawSession& session,
               const Patience& patience) {
  KeyText bytes;
  const Status read = read_key(path, bytes);
  if (!read.ok()) return {Login::kRefused, read.error().message};
  bool asked = false;
  const SshKey bare = import_key(bytes, asked);
  if (!bare) {
    return {Login::kRefused, text("key file ", path,
                                  asked ? ": has a passphrase; load it into ssh-agent by ssh-add, which takes its "
                                          "certificate along"
                                        : ": no private key that libssh reads")};
  }
  const auto try_key = [&](const SshKey& key, const std::string& what) {
    return attempt(session, patience, what,
                   [&] { return ssh_userauth_publickey(session.handle(), nullptr, key.get()); });
  };
  std::vector<std::string> files = {path + "-cert.pub"};
  files.insert(files.end(), certificates.begin(), certificates.end());
  std::string refused;
  for (const std::string& file : files) {
    const SshKey certificate = read_certificate(file);
    if (!certificate) {
      if (&file != &files.front()) refused += text("certificate file ", file, ": none that can be read; ");
      continue;
    }
    if (!is_certificate_of(certificate, bare)) continue;  // but of another key
    const SshKey key = import_key(bytes, asked);
    if (!key || ssh_pki_copy_cert_to_privkey(certificate.get(), key.get()) != SSH_OK) continue;
    Tried tried = try_key(key, text("key file ", path, " with the certificate ", file));
    if (tried.login != Login::kRefused) return tried;
    refused += text(tried.what, " (ssh-keygen -L -f ", shell_word(file), " shows for whom it is, and until when); ");
  }
  Tried tried = try_key(bare, text("key file ", path));
  tried.what.insert(0, refused);
  return tried;
}

SshFailure stuck(const SshTarget& target, const RawSession& session, const Tried& tried, const std::string& what,
                 const Patience& patience) {
  SshFailure out{.failure = {.kind = LaunchFailureKind::kAuthentication, .phase = "authenticate"}};
  if (tried.waited == WaitEnd::kTimeout) out.failure.kind = LaunchFailureKind::kTimeout;
  if (tried.waited == WaitEnd::kCancelled) out.failure.kind = LaunchFailureKind::kOther;
  const std::string ended = tried.waited == WaitEnd::kReady
                                ? text("the server hangs up (", session.error(),
                                       "); one with many keys in ssh-agent is "
                                       "cut off after a few (MaxAuthTries)")
                                : wait_end_text(tried.waited, target.connect_timeout, patience);
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
    SshFailure out = stuck(target, session, {Login::kStuck, "", none.waited}, what, patience);
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
    if (result.login == Login::kStuck) return stuck(target, session, result, what, patience);
    tried.push_back(std::move(result.what));
    return std::nullopt;
  };
  if ((static_cast<unsigned>(methods) & SSH_AUTH_METHOD_PUBLICKEY) != 0) {
    Agent agent(target, session, patience);
    if (!agent.why().empty()) tried.push_back(agent.why());
    if (agent.has_own()) {
      if (auto end = go_on(agent.try_own(patience))) return *end;
    }
    for (const std::string& path : target.identities) {
      if (agent.was_denied(path)) continue;
      if (auto end = go_on(try_file(path, target.certificates, session, patience))) return *end;
    }
    if (agent.has_others()) {
      if (auto end = go_on(agent.try_others(patience))) return *end;
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
