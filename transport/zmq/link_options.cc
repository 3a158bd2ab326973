#include "transport/zmq/link_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <zmq.h>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kMaxRetransmitMilliseconds = 4'000;  // TCP_USER_TIMEOUT: a cable that was pulled ends the connection

// Of a peer that was silent so long the kernel asks whether it is there; the time above is its patience.
constexpr int kKeepaliveSeconds = 2;

int milliseconds(Duration duration) { return static_cast<int>(duration.count_milliseconds()); }

bool parses(int family, const std::string& address) {
  in6_addr room{};
  return ::inet_pton(family, address.c_str(), &room) == 1;
}

}  // namespace

Status apply_link_options(ZmqSocket& socket, const LinkOptions& options, const CurveKeyPair& keys) {
  MONARCH_ASSERT(options.io_thread >= 0 && options.io_thread < 63);
  MONARCH_ASSERT(options.high_water_mark > 0);  // 0 is libzmq's "without limit"
  MONARCH_TRY(socket.set_wide(ZMQ_AFFINITY, std::int64_t{1} << options.io_thread));
  MONARCH_TRY(socket.set(ZMQ_SNDHWM, options.high_water_mark));
  MONARCH_TRY(socket.set(ZMQ_RCVHWM, options.receive_high_water_mark.value_or(options.high_water_mark)));
  MONARCH_TRY(socket.set_wide(ZMQ_MAXMSGSIZE, static_cast<std::int64_t>(options.message_bytes + kDisconnectSlack)));
  MONARCH_TRY(socket.set(ZMQ_HANDSHAKE_IVL, milliseconds(options.handshake_interval)));
  MONARCH_TRY(socket.set(ZMQ_HEARTBEAT_IVL, milliseconds(options.beat_interval)));
  MONARCH_TRY(socket.set(ZMQ_HEARTBEAT_TIMEOUT, milliseconds(options.beat_timeout)));
  MONARCH_TRY(socket.set(ZMQ_HEARTBEAT_TTL, options.others_wait_for_beats ? milliseconds(options.beat_timeout) : 0));
  MONARCH_TRY(socket.set(ZMQ_TCP_KEEPALIVE, 1));
  MONARCH_TRY(socket.set(ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveSeconds));
  MONARCH_TRY(socket.set(ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveSeconds));
  MONARCH_TRY(socket.set(ZMQ_TCP_MAXRT, kMaxRetransmitMilliseconds));
  MONARCH_TRY(socket.set_bytes(ZMQ_CURVE_PUBLICKEY, keys.public_key.bytes()));
  return socket.set_bytes(ZMQ_CURVE_SECRETKEY, keys.secret_key.bytes());
}

bool is_ipv6(const std::string& address) { return parses(AF_INET6, address); }

Result<std::string> tcp_endpoint(const std::string& address, const std::string& port) {
  if (is_ipv6(address)) return text("tcp://[", address, "]:", port);
  if (parses(AF_INET, address)) return text("tcp://", address, ":", port);
  return Error{ErrorCode::kInvalid, text("`", printable(address), "` is not a numeric address")};
}

}  // namespace monarch
