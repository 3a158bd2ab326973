#include "supervisor/launch/ssh/session/raw_session.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <poll.h>

#include "supervisor/launch/ssh/session/host_key.h"
#include "supervisor/launch/ssh/session/libssh_key.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Neither SHA-1 nor CBC; no ChaCha20 either, which an attacker in between can cut messages from where the server does
// not know the strict key exchange (CVE-2023-48795).
constexpr char kKeyExchanges[] =
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521,"
    "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256";
constexpr char kCiphers[] = "aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";
constexpr char kMacs[] = "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512";
constexpr char kLoginKeys[] =
    "ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com,ecdsa-sha2-nistp384-cert-v01@openssh."
    "com,"
    "ecdsa-sha2-nistp521-cert-v01@openssh.com,rsa-sha2-512-cert-v01@openssh.com,rsa-sha2-256-cert-v01@openssh.com,"
    "ssh-ed25519,sk-ssh-ed25519@openssh.com,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,"
    "sk-ecdsa-sha2-nistp256@openssh.com,rsa-sha2-512,rsa-sha2-256";
constexpr char kCompression[] = "none";
constexpr char kNowhere[] = "/dev/null";

bool configure(ssh_session session, const SshTarget& target, const std::string& key_algorithms, int socket) {
  const int no = 0;
  const int yes = 1;
  // The name goes nowhere: we dial, and we look keys up. libssh wants one, and parses it.
  const std::pair<ssh_options_e, const void*> options[] = {
      {SSH_OPTIONS_PROCESS_CONFIG, &no},
      {SSH_OPTIONS_SSH_DIR, "/nonexistent"},
      {SSH_OPTIONS_HOST, "peer"},
      {SSH_OPTIONS_USER, target.user.c_str()},
      {SSH_OPTIONS_KNOWNHOSTS, kNowhere},
      {SSH_OPTIONS_GLOBAL_KNOWNHOSTS, kNowhere},
      {SSH_OPTIONS_STRICTHOSTKEYCHECK, &yes},
      {SSH_OPTIONS_KEY_EXCHANGE, kKeyExchanges},
      {SSH_OPTIONS_HOSTKEYS, key_algorithms.c_str()},
      {SSH_OPTIONS_CIPHERS_C_S, kCiphers},
      {SSH_OPTIONS_CIPHERS_S_C, kCiphers},
      {SSH_OPTIONS_HMAC_C_S, kMacs},
      {SSH_OPTIONS_HMAC_S_C, kMacs},
      {SSH_OPTIONS_COMPRESSION_C_S, kCompression},
      {SSH_OPTIONS_COMPRESSION_S_C, kCompression},
      {SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES, kLoginKeys},
      {SSH_OPTIONS_PASSWORD_AUTH, &no},
      {SSH_OPTIONS_KBDINT_AUTH, &no},
      {SSH_OPTIONS_GSSAPI_AUTH, &no},
      {SSH_OPTIONS_FD, &socket},
  };
  for (const auto& [option, value] : options) {
    if (ssh_options_set(session, option, value) < 0) return false;
  }
  return true;
}

SshFailure exchange_failure(const SshTarget& target, RawSession& session, WaitEnd end, const Patience& patience) {
  const bool silent = ssh_get_serverbanner(session.handle()) == nullptr;
  const std::string what =
      text(silent ? "waiting for the SSH banner of " : "exchanging keys with ", where_text(target));
  SshFailure out = end == WaitEnd::kReady
                       ? ssh_failure(session.connected() ? LaunchFailureKind::kOther : LaunchFailureKind::kClosed,
                                     "connect", text(what, ": ", session.error()))
                       : ssh_failure(end == WaitEnd::kTimeout ? LaunchFailureKind::kTimeout : LaunchFailureKind::kOther,
                                     "connect", text(what, ": ", wait_end_text(end, target.connect_timeout, patience)));
  out.worth_retrying = silent && (out.failure.kind == LaunchFailureKind::kClosed || end == WaitEnd::kTimeout);
  return out;
}

}  // namespace

std::string wait_end_text(WaitEnd end, Duration limit, const Patience& patience) {
  switch (end) {
    case WaitEnd::kReady: return "ready";
    case WaitEnd::kTimeout: return text("no answer within ", to_text(limit), patience.late());
    case WaitEnd::kCancelled: return "cancelled";
  }
  return "";
}

struct RawSession::Counters {
  ssh_counter_struct socket{};
};

RawSession::RawSession(ssh_session_struct* handle, int socket, std::unique_ptr<Forward> below)
    : counters_(std::make_unique<Counters>()), handle_(handle), socket_(socket), below_(std::move(below)) {
  ssh_set_counters(handle_, &counters_->socket, nullptr);
}

// WARNING: ssh_disconnect() forgets a socket that was given by SSH_OPTIONS_FD and does not close it, so that the
// connection and the server's session outlive this one (libssh 0.10.6, client.c). ssh_free() closes it, and the server
// takes that for what it is.
RawSession::~RawSession() { ssh_free(handle_); }

std::string RawSession::error() const { return printable(ssh_get_error(handle_)); }

bool RawSession::connected() const { return ssh_is_connected(handle_) != 0; }

std::uint64_t RawSession::bytes_read() const { return counters_->socket.in_bytes; }

bool RawSession::writes_wait() const { return (ssh_get_poll_flags(handle_) & SSH_WRITE_PENDING) != 0; }

// The first call takes the answer to an earlier question, if it has come; then the second one asks. The host's answer
// is a no (libssh calls that a failure), which is an answer.
void RawSession::ask_for_life() {
  (void)ssh_send_keepalive(handle_);
  (void)ssh_send_keepalive(handle_);
}

void RawSession::watch(std::vector<pollfd>& watched, bool reads) const {
  watched.push_back({socket_, static_cast<short>((reads ? POLLIN : 0) | (writes_wait() ? POLLOUT : 0)), 0});
  if (below_) below_->watch(watched);
}

void RawSession::carry() {
  if (below_) below_->carry();
}

WaitEnd RawSession::wait(const Patience& patience) {
  for (;;) {
    carry();
    std::vector<pollfd> watched;
    watch(watched, true);
    const WaitEnd end = wait_for_any(watched, patience);
    if (end != WaitEnd::kReady) return end;
    if (watched.front().revents != 0) return end;  // its own
  }
}

std::variant<std::unique_ptr<RawSession>, SshFailure> RawSession::exchange_keys(const SshTarget& target,
                                                                                UniqueFd socket,
                                                                                std::unique_ptr<Forward> below,
                                                                                const std::string& key_algorithms,
                                                                                const Patience& patience) {
  ssh_session handle = ssh_new();
  if (handle == nullptr || !configure(handle, target, key_algorithms, socket.get())) {
    const std::string why = handle == nullptr ? "no memory" : ssh_get_error(handle);
    ssh_free(handle);
    return ssh_failure(LaunchFailureKind::kOther, "connect", text("libssh refuses an option: ", why));
  }
  ssh_set_blocking(handle, 0);
  std::unique_ptr<RawSession> session(new RawSession(handle, socket.release(), std::move(below)));
  const auto answer = session->until_done(SSH_AGAIN, patience, [&] {
    const int result = ssh_connect(handle);
    // WARNING: libssh 0.10 makes the socket blocking once it is connected (socket.c), and a send to a host that stopped
    // reading would then hang this thread. It sends only after POLLOUT, and does with what was taken.
    if (result != SSH_ERROR) (void)::fcntl(session->socket_, F_SETFL, O_RDWR | O_NONBLOCK);
    return result;
  });
  if (const auto* end = std::get_if<WaitEnd>(&answer)) return exchange_failure(target, *session, *end, patience);
  if (std::get<int>(answer) != SSH_OK) return exchange_failure(target, *session, WaitEnd::kReady, patience);
  return session;
}

std::variant<std::unique_ptr<VerifiedSession>, SshFailure> VerifiedSession::verify_host_key(
    const SshTarget& target, std::unique_ptr<RawSession> raw, const std::vector<KnownKey>& known) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(raw->handle(), &key) != SSH_OK) {
    return ssh_failure(LaunchFailureKind::kOther, "host key",
                       text(where_text(target), " presents no host key: ", raw->error()));
  }
  const auto presented = describe_key(key);
  ssh_key_free(key);
  if (!presented) {
    return ssh_failure(LaunchFailureKind::kOther, "host key",
                       text(where_text(target), " presents a key that cannot be read"));
  }
  const auto verdict = judge_host_key(target, *presented, known);
  if (const auto* refusal = std::get_if<HostKeyRefusal>(&verdict)) {
    return ssh_failure(refusal->kind, "host key", refusal->message);
  }
  if (std::get<HostKeyTrust>(verdict) == HostKeyTrust::kNew) {
    log_warn("ssh: trusting the new host key of ", where_text(target), ": ", presented->type, " ",
             presented->fingerprint);
    const Status kept = target.known_hosts.empty()
                            ? Status()
                            : remember_key(target.known_hosts.front(), known_hosts_name(target), *presented);
    // A key that cannot be kept would be new, and trusted, every time.
    if (!kept.ok()) return ssh_failure(LaunchFailureKind::kOther, "host key", kept.error().message);
  }
  return std::unique_ptr<VerifiedSession>(new VerifiedSession(std::move(raw)));
}

}  // namespace monarch
