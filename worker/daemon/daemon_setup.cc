#include "worker/daemon/daemon_setup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "transport/base/files/directories.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/sealed_memory.h"
#include "worker/daemon/own_address.h"
#include "worker/daemon/promise_file.h"

namespace monarch::daemon {
namespace {

Result<DaemonStash> read_stash(const UniqueFd& memory) {
  struct stat status {};
  if (::fstat(memory.get(), &status) != 0) return errno_error("fstat of the stash", errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > limits::kControlPayloadBytes) return Error{ErrorCode::kInvalid, text("a stash of ", size, " bytes")};
  MONARCH_ASSIGN(const std::string bytes, read_sealed_memory(memory.get(), size));
  return decode_payload<DaemonStash>(bytes);
}

Result<ClientOptions> link_to(const std::string& endpoint, const CurvePublicKey& server_key) {
  MONARCH_ASSIGN(ClientOptions options, parse_endpoint(endpoint));
  options.server_key = server_key;
  options.link.others_wait_for_beats = false;  // the supervisor has its own
  return options;
}

Result<CurveKeyPair> keys_of(DaemonStash& stash) {
  if (!stash.public_key.empty()) {
    MONARCH_ASSIGN(CurveSecretKey secret, CurveSecretKey::from_bytes(stash.secret_key));
    return curve_key_pair_of(std::move(secret));
  }
  MONARCH_ASSIGN(CurveKeyPair keys, make_curve_key_pair());
  stash.public_key = keys.public_key.to_text();
  stash.secret_key = std::string(keys.secret_key.bytes());
  return keys;
}

// What cannot be written is said to the launcher at once, not when it is needed. The first promise is made here: to the
// supervisor that started us.
Status claim_directories(DaemonStash& stash) {
  MONARCH_TRY(make_directories(stash.bootstrap.log_directory));
  stash.promised = std::max(stash.promised, stash.bootstrap.term);
  return write_promise(stash.bootstrap.state_directory, stash.promised);
}

}  // namespace

Result<Setup> set_up(const UniqueFd& stash, BootstrapRefusal& refusal) {
  MONARCH_ASSIGN(DaemonStash found, read_stash(stash));
  const Bootstrap& bootstrap = found.bootstrap;
  if (bootstrap.heartbeat <= Duration::zero() || bootstrap.orphan_ttl <= Duration::zero()) {
    return Error{ErrorCode::kInvalid, "a bootstrap without a heartbeat or an orphan_ttl"};
  }
  const bool first_start = found.public_key.empty();
  MONARCH_ASSIGN(const CurvePublicKey server_key, CurvePublicKey::parse(bootstrap.server_public_key));
  MONARCH_ASSIGN(ClientOptions control, link_to(bootstrap.control_endpoint, server_key));
  MONARCH_ASSIGN(ClientOptions bulk, link_to(bootstrap.bulk_endpoint, server_key));
  if (first_start && !bootstrap.interface.empty()) {
    refusal = BootstrapRefusal::kInterface;
    MONARCH_ASSIGN(found.bootstrap.host_address, interface_address(bootstrap.interface));
    refusal = BootstrapRefusal::kOther;
  }
  if (found.bootstrap.host_address.empty()) {
    found.bootstrap.host_address = own_address(control.address, control.port);
  }
  // A piece of output is a control message's size and its frame.
  bulk.link.high_water_mark = limits::kBulkHighWaterMark;
  bulk.link.message_bytes = limits::kBulkPayloadBytes;
  control.link.unread_bytes = bulk.link.unread_bytes = 0;  // a supervisor is believed
  MONARCH_ASSIGN(const Term on_disk, read_promise(bootstrap.state_directory));
  found.promised = std::max(found.promised, on_disk);
  if (first_start) MONARCH_TRY(claim_directories(found));
  MONARCH_ASSIGN(CurveKeyPair keys, keys_of(found));
  return Setup{std::move(found), std::move(keys), std::move(control), std::move(bulk), first_start};
}

Result<ClientOptions> parse_endpoint(const std::string& endpoint) {
  const Error invalid{ErrorCode::kInvalid, text("not an endpoint: '", printable(endpoint), "'")};
  constexpr std::string_view kScheme = "tcp://";
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kScheme) || colon == std::string::npos || colon < kScheme.size()) return invalid;
  ClientOptions options;
  options.address = endpoint.substr(kScheme.size(), colon - kScheme.size());
  if (options.address.size() > 2 && options.address.front() == '[' && options.address.back() == ']') {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
  const char* const end = endpoint.data() + endpoint.size();
  const auto [stopped, error] = std::from_chars(endpoint.data() + colon + 1, end, options.port);
  if (options.address.empty() || error != std::errc{} || stopped != end || options.port == 0) return invalid;
  return options;
}

std::string encode_stash(const DaemonStash& stash) { return encode_payload(stash); }

Status answer_launcher(int fd, const JobUuid& job, const BootstrapReply& reply) {
  Frame frame;
  frame.header.job = job;
  frame.payload = encode_payload(reply);
  const std::string bytes = encode_frame(frame);
  std::string_view rest = bytes;
  Status status;
  while (!rest.empty() && status.ok()) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
    if (n < 0 && errno != EINTR) status = errno_error("answering the launcher", errno);
  }
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // Closed at least: the launcher waits for the end.
  if (!null.valid() || ::dup2(null.get(), fd) < 0) (void)::close(fd);
  return status;
}

}  // namespace monarch::daemon
