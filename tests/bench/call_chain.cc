// What calls are compared with: bare libzmq over as many processes, there and back. A call between two hosts: caller
// – ipc – relay – TCP with CURVE – relay – ipc – rank; the same without relays, caller – TCP with CURVE – rank; and a
// call on one host, caller – ipc – relay – ipc – rank. No frame is looked into. Prints the median of a round trip of
// each, in µs: `chain direct relay`.
//
// usage: call-chain ROUND_TRIPS BYTES

#include <sys/prctl.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using Keys = std::array<char, 41>;  // Z85, with the 0 behind it

struct KeyPair {
  Keys secret{};
  Keys open{};
};

void must(bool right, const char* what) {
  if (right) return;
  (void)std::fprintf(stderr, "call-chain: %s: %s\n", what, zmq_strerror(zmq_errno()));
  std::_Exit(1);
}

void use_keys(void* socket, const KeyPair& own, const Keys* servers) {
  const int server = servers == nullptr ? 1 : 0;
  must(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, own.secret.data(), 40) == 0, "key");
  if (server != 0) {
    must(zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &server, sizeof server) == 0, "CURVE");
  } else {
    must(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, own.open.data(), 40) == 0, "key");
    must(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, servers->data(), 40) == 0, "key");
  }
}

// A process that ends with this one.
void run_beside(const std::function<void(void* context)>& work) {
  if (const pid_t child = ::fork(); child != 0) return must(child > 0, "fork");
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  work(zmq_ctx_new());
  std::_Exit(0);
}

void* bound(void* context, int type, const std::string& at, const KeyPair* keys = nullptr) {
  void* const socket = zmq_socket(context, type);
  if (keys != nullptr) use_keys(socket, *keys, nullptr);
  must(zmq_bind(socket, at.c_str()) == 0, at.c_str());
  return socket;
}

void* connected(void* context, int type, const std::string& to, const KeyPair* keys = nullptr,
                const Keys* server = nullptr) {
  void* const socket = zmq_socket(context, type);
  if (keys != nullptr) use_keys(socket, *keys, server);
  must(zmq_connect(socket, to.c_str()) == 0, to.c_str());
  return socket;
}

void answer_all(void* socket) {
  std::string bytes(1U << 20U, '\0');
  for (;;) {
    const int size = zmq_recv(socket, bytes.data(), bytes.size(), 0);
    must(size >= 0 && zmq_send(socket, bytes.data(), static_cast<std::size_t>(size), 0) == size, "answer");
  }
}

double median_microseconds(void* socket, int round_trips, std::size_t bytes) {
  const std::string sent(bytes, 'x');
  std::string back(bytes, '\0');
  std::vector<double> times;
  for (int i = 0; i < round_trips + round_trips / 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    must(zmq_send(socket, sent.data(), bytes, 0) >= 0, "send");
    must(zmq_recv(socket, back.data(), bytes, 0) == static_cast<int>(bytes) && back == sent, "receive");
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (i >= round_trips / 10) times.push_back(took.count());  // the first are warm-up
  }
  std::nth_element(times.begin(), times.begin() + round_trips / 2, times.end());
  return times[static_cast<std::size_t>(round_trips / 2)];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int round_trips = std::atoi(argv[1]);
  const auto bytes = static_cast<std::size_t>(std::atoi(argv[2]));
  char folder[] = "/tmp/call-chain-XXXXXX";
  must(::mkdtemp(folder) != nullptr, "mkdtemp");
  const std::string near = std::string("ipc://") + folder + "/near";
  const std::string far = std::string("ipc://") + folder + "/far";
  const std::string door = std::string("ipc://") + folder + "/door";
  const std::string rank = std::string("ipc://") + folder + "/rank";
  const std::string tcp = "tcp://127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000);
  const std::string other = "tcp://127.0.0.1:" + std::to_string(20001 + ::getpid() % 20000);
  KeyPair caller;
  KeyPair server;
  for (KeyPair* one : {&caller, &server}) must(zmq_curve_keypair(one->open.data(), one->secret.data()) == 0, "CURVE");
  run_beside([&](void* context) {
    zmq_proxy(bound(context, ZMQ_ROUTER, near), connected(context, ZMQ_DEALER, tcp, &caller, &server.open), nullptr);
  });
  run_beside([&](void* context) {
    zmq_proxy(bound(context, ZMQ_ROUTER, tcp, &server), bound(context, ZMQ_DEALER, far), nullptr);
  });
  run_beside([&](void* context) { answer_all(connected(context, ZMQ_REP, far)); });
  run_beside(
      [&](void* context) { zmq_proxy(bound(context, ZMQ_ROUTER, door), bound(context, ZMQ_DEALER, rank), nullptr); });
  run_beside([&](void* context) { answer_all(connected(context, ZMQ_REP, rank)); });
  run_beside([&](void* context) { answer_all(bound(context, ZMQ_REP, other, &server)); });
  void* const context = zmq_ctx_new();
  const double chain = median_microseconds(connected(context, ZMQ_REQ, near), round_trips, bytes);
  const double direct =
      median_microseconds(connected(context, ZMQ_REQ, other, &caller, &server.open), round_trips, bytes);
  const double relay = median_microseconds(connected(context, ZMQ_REQ, door), round_trips, bytes);
  std::printf("%.1f %.1f %.1f\n", chain, direct, relay);
  for (const std::string& path : {near, far, door, rank}) (void)::unlink(path.substr(6).c_str());
  (void)::rmdir(folder);
  std::fflush(stdout);
  std::_Exit(0);  // the others end with this one
}
