#include "supervisor/launch/ssh/session/ssh_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "supervisor/launch/ssh/session/ssh_wire.h"
#include "transport/base/base64.h"
#include "transport/base/clock.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using ssh_wire::big_endian;
using ssh_wire::in_big_endian;
using ssh_wire::kLengthBytes;
using ssh_wire::next_string;

// draft-miller-ssh-agent: each message is its length in four bytes, its type in one, and its contents.
constexpr std::string_view kRequestIdentities("\0\0\0\1\13", 5);
constexpr char kRequestIdentitiesType = 11;
constexpr char kIdentitiesAnswer = 12;
constexpr std::size_t kCountEnd = 9;  // length, type, number of keys
constexpr std::uint32_t kLongestMessage = 256U << 10U;
constexpr std::size_t kMostKeys = 2048;  // as OpenSSH's

Error silence(const std::string& path, WaitEnd end, const Patience& patience) {
  return {ErrorCode::kTimeout, text("ssh-agent at ", path,
                                    end == WaitEnd::kCancelled ? ": cancelled" : " does not answer", patience.late())};
}

// One message, with its length, and no byte after it.
Result<std::string> read_message(int fd, const std::string& whose, const Patience& patience) {
  std::string message;
  std::size_t whole = kLengthBytes;
  while (message.size() < whole) {
    const WaitEnd end = wait_for(fd, POLLIN, patience);
    if (end != WaitEnd::kReady) return silence(whose, end, patience);
    char piece[4096];
    const ssize_t count = ::recv(fd, piece, std::min(whole - message.size(), sizeof piece), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return errno_error(text("ssh-agent at ", whose), errno);
    if (count == 0) return Error{ErrorCode::kGone, text("ssh-agent at ", whose, " hangs up")};
    message.append(piece, static_cast<std::size_t>(count));
    if (message.size() != kLengthBytes) continue;
    const std::uint32_t length = big_endian(message);
    if (length == 0 || length > kLongestMessage) {
      return Error{ErrorCode::kUnsupported, text("ssh-agent at ", whose, " says something else than an agent does")};
    }
    whole += length;
  }
  return message;
}

Status write_message(int fd, std::string_view message, const std::string& whose, const Patience& patience) {
  while (!message.empty()) {
    const WaitEnd end = wait_for(fd, POLLOUT, patience);
    if (end != WaitEnd::kReady) return silence(whose, end, patience);
    const ssize_t count = ::send(fd, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return errno_error(text("ssh-agent at ", whose), errno);
    message.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

std::optional<std::vector<AgentKey>> keys_of(std::string_view answer) {
  if (answer.size() < kCountEnd || answer[kLengthBytes] != kIdentitiesAnswer) return std::nullopt;
  const std::uint32_t count = big_endian(answer.substr(kLengthBytes + 1));
  if (count > kMostKeys) return std::nullopt;
  std::vector<AgentKey> keys;
  std::string_view rest = answer.substr(kCountEnd);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string_view from_here = rest;
    const auto key = next_string(rest);
    if (!key || !next_string(rest)) return std::nullopt;  // its comment
    keys.push_back({.entry = std::string(from_here.substr(0, from_here.size() - rest.size())),
                    .base64 = to_base64(ssh_wire::plain_key(*key))});
  }
  return keys;
}

std::string answer_with(const AgentProxy::Keys& keys) {
  std::string answer(1, kIdentitiesAnswer);
  answer += in_big_endian(keys.size());
  for (const AgentKey& key : keys) answer += key.entry;
  return in_big_endian(answer.size()) + answer;
}

// Until one of them has nothing more to say.
void serve(int client, int agent, std::vector<std::string> answers, const Patience& patience) {
  const std::string whose = "the proxy";
  std::size_t turn = 0;
  for (;;) {
    const auto question = read_message(client, whose, patience);
    if (!question.ok()) break;
    std::string answer;
    if ((*question)[kLengthBytes] == kRequestIdentitiesType) {
      answer = turn < answers.size() ? answers[turn++] : answer_with({});
    } else {
      if (!write_message(agent, *question, whose, patience).ok()) break;
      auto answered = read_message(agent, whose, patience);
      if (!answered.ok()) break;
      answer = std::move(*answered);
    }
    if (!write_message(client, answer, whose, patience).ok()) break;
  }
  (void)::shutdown(client, SHUT_RDWR);  // libssh may be waiting for an answer
}

}  // namespace

Result<AgentDoor> open_agent(const std::string& path, const Patience& whole) {
  // One that hangs leaves half of the time to the key files.
  const Patience patience = whole.part(2);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalid, text("ssh-agent at ", path, ": the path of a socket has at most 107 bytes")};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  AgentDoor door;
  door.socket = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door.socket.valid()) return errno_error("socket", errno);
  // A unix socket connects at once, or its queue is full.
  if (::connect(door.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return errno_error(text("ssh-agent at ", path), errno);
  }
  MONARCH_TRY(write_message(door.socket.get(), kRequestIdentities, path, patience));
  MONARCH_ASSIGN(const std::string answer, read_message(door.socket.get(), path, patience));
  auto keys = keys_of(answer);
  if (!keys) return Error{ErrorCode::kUnsupported, text("ssh-agent at ", path, " does not tell its keys")};
  door.keys = std::move(*keys);
  return door;
}

Result<std::unique_ptr<AgentProxy>> AgentProxy::start(UniqueFd agent, const std::vector<Keys>& turns,
                                                      const Patience& patience) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return errno_error("socketpair", errno);
  UniqueFd far(ends[0]);
  UniqueFd near(ends[1]);
  UniqueFd client(::fcntl(near.get(), F_DUPFD_CLOEXEC, 3));
  if (!client.valid()) return errno_error("a descriptor for what stands before ssh-agent", errno);
  std::vector<std::string> answers;
  for (const Keys& keys : turns) answers.push_back(answer_with(keys));
  std::unique_ptr<AgentProxy> proxy(new AgentProxy(std::move(far), std::move(near)));
  try {
    proxy->thread_ = std::thread([patience, answers = std::move(answers), client = std::move(client),
                                  agent = std::move(agent)] { serve(client.get(), agent.get(), answers, patience); });
  } catch (const std::system_error& error) {
    return thread_error(error.code().value());
  }
  return proxy;
}

AgentProxy::~AgentProxy() {
  (void)::shutdown(near_.get(), SHUT_RDWR);  // its thread reads an end
  if (thread_.joinable()) thread_.join();
}

}  // namespace monarch
