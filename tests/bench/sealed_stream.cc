// What large bodies between hosts are compared with: one TCP connection over loopback, from the memory of one process
// to that of another, in pieces that are sealed as those of bodies are, by the same cipher, one thread a side, with
// nothing else of ours on the way. Prints the median of so many bodies, in MiB/s: from the first piece until the
// other side says that it has all.
//
// usage: sealed-stream MEBIBYTES BODIES

#include <arpa/inet.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "transport/peers/body_cipher.h"

namespace monarch {
namespace {

constexpr std::size_t kPiece = 256U << 10U;
constexpr BodyKey kKey = {1, 2, 3};

void must(bool right, const char* what) {
  if (right) return;
  (void)std::fprintf(stderr, "sealed-stream: %s: %s\n", what, std::strerror(errno));  // exiting either way
  std::_Exit(1);
}

void write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    must(sent > 0, "send");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void read_all(int socket, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, to, size, 0);
    must(got > 0, "receive");
    to += got;
    size -= static_cast<std::size_t>(got);
  }
}

// A count is used once with a key: there is one connection, and one direction.
BodyNonce nonce_of(std::uint64_t count) {
  BodyNonce nonce{};
  std::memcpy(nonce.data(), &count, sizeof count);
  return nonce;
}

std::vector<char> body(std::size_t size) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 4099);
  return bytes;
}

// The other side: opens each piece into its place, and says one byte for each body.
void take_bodies(int socket, std::size_t size, int bodies) {
  const auto cipher = BodyCipher::make(kKey, BodyCipher::has_aes());
  const std::vector<char> wanted = body(size);
  std::vector<char> memory(size, 'x');
  std::vector<char> piece(kPiece + BodyCipher::kTagBytes);
  std::uint64_t used = 0;
  for (int i = 0; i < bodies; ++i) {
    for (std::size_t at = 0; at < size; at += kPiece) {
      const std::size_t plain = std::min(kPiece, size - at);
      read_all(socket, piece.data(), plain + BodyCipher::kTagBytes);
      const std::string_view sealed(piece.data(), plain + BodyCipher::kTagBytes);
      must(cipher->open(nonce_of(used++), {}, sealed, memory.data() + at), "another piece than was sealed");
    }
    write_all(socket, "!");
  }
  must(memory == wanted, "other bytes");
}

std::vector<double> send_bodies(int socket, std::size_t size, int bodies) {
  const auto cipher = BodyCipher::make(kKey, BodyCipher::has_aes());
  const std::vector<char> bytes = body(size);
  std::vector<char> piece(kPiece + BodyCipher::kTagBytes);
  std::vector<double> seconds;
  std::uint64_t used = 0;
  for (int i = 0; i < bodies; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t at = 0; at < size; at += kPiece) {
      const std::size_t plain = std::min(kPiece, size - at);
      cipher->seal(nonce_of(used++), {}, {bytes.data() + at, plain}, piece.data());
      write_all(socket, {piece.data(), plain + BodyCipher::kTagBytes});
    }
    char heard = 0;
    read_all(socket, &heard, 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i > 0) seconds.push_back(took.count());  // the first makes the pages
  }
  return seconds;
}

int stream(std::size_t size, int bodies) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  must(::bind(listener, address, length) == 0 && ::listen(listener, 1) == 0, "listen");
  must(::getsockname(listener, address, &length) == 0, "getsockname");
  const pid_t child = ::fork();
  must(child >= 0, "fork");
  if (child == 0) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int socket = ::accept(listener, nullptr, nullptr);
    must(socket >= 0, "accept");
    take_bodies(socket, size, bodies + 1);
    std::_Exit(0);
  }
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(::connect(socket, address, length) == 0, "connect");
  std::vector<double> seconds = send_bodies(socket, size, bodies + 1);
  int status = 0;
  must(::waitpid(child, &status, 0) == child && status == 0, "the other side has failed");
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  std::printf("%.1f\n", static_cast<double>(size) / (1U << 20U) / *middle);
  return 0;
}

}  // namespace
}  // namespace monarch

int main(int argc, char** argv) {
  const int mebibytes = argc == 3 ? std::atoi(argv[1]) : 0;
  const int bodies = argc == 3 ? std::atoi(argv[2]) : 0;
  if (mebibytes < 1 || bodies < 1) {
    (void)std::fprintf(stderr, "usage: sealed-stream MEBIBYTES BODIES\n");
    return 2;
  }
  return monarch::stream(static_cast<std::size_t>(mebibytes) << 20U, bodies);
}
