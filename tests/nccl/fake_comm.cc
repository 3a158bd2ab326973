#include "tests/nccl/fake_comm.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>

namespace monarch::fake_nccl {

namespace {

using namespace tensor::own_nccl;

template <class T>
void reduce_as(char* into, const char* with, std::size_t elements, int op) {
  for (std::size_t i = 0; i < elements; ++i) {
    T a;
    T b;
    std::memcpy(&a, into + i * sizeof(T), sizeof a);
    std::memcpy(&b, with + i * sizeof(T), sizeof b);
    if (op == kSum || op == kAverage) a = static_cast<T>(a + b);
    if (op == kProduct) a = static_cast<T>(a * b);
    if (op == kMax) a = std::max(a, b);
    if (op == kMin) a = std::min(a, b);
    std::memcpy(into + i * sizeof(T), &a, sizeof a);
  }
}

template <class T>
void divide_as(char* into, std::size_t elements, int by) {
  for (std::size_t i = 0; i < elements; ++i) {
    T a;
    std::memcpy(&a, into + i * sizeof(T), sizeof a);
    a = static_cast<T>(a / static_cast<T>(by));
    std::memcpy(into + i * sizeof(T), &a, sizeof a);
  }
}

void reduce(char* into, const char* with, std::size_t elements, int dtype, int op) {
  if (dtype == kFloat32) reduce_as<float>(into, with, elements, op);
  if (dtype == kFloat64) reduce_as<double>(into, with, elements, op);
  if (dtype == kInt32) reduce_as<std::int32_t>(into, with, elements, op);
  if (dtype == kInt64) reduce_as<std::int64_t>(into, with, elements, op);
}

void divide(char* into, std::size_t elements, int dtype, int by) {
  if (dtype == kFloat32) divide_as<float>(into, elements, by);
  if (dtype == kFloat64) divide_as<double>(into, elements, by);
  if (dtype == kInt32) divide_as<std::int32_t>(into, elements, by);
  if (dtype == kInt64) divide_as<std::int64_t>(into, elements, by);
}

// ---- Sockets of this machine.

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

UniqueFd listen() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in at = loopback(0);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(fd.get(), 64) != 0)
    return {};
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  (void)::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

void send_at_once(const UniqueFd& fd) {
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

UniqueFd connect(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  send_at_once(fd);
  const sockaddr_in at = loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return {};
  return fd;
}

// What a member says to who has made the id.
struct Seat {
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint16_t port = 0;
};

// Where one is killed before it has said so the others hear nothing.
void tell_ports(int listener) {
  std::map<int, std::pair<UniqueFd, std::uint16_t>> members;
  for (std::size_t size = 1; members.size() < size;) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Seat seat;
    if (::recv(fd.get(), &seat, sizeof seat, MSG_WAITALL) != sizeof seat) continue;
    size = static_cast<std::size_t>(seat.size);
    members[seat.rank] = {std::move(fd), seat.port};
  }
  std::vector<std::uint16_t> ports;
  for (const auto& [rank, member] : members) ports.push_back(member.second);
  for (const auto& [rank, member] : members) {
    (void)!::send(member.first.get(), ports.data(), ports.size() * sizeof ports[0], MSG_NOSIGNAL);
  }
}

}  // namespace

void broken(const char* what) {
  (void)std::fprintf(stderr, "fake libnccl: %s\n", what);
  std::abort();
}

std::size_t bytes_of(int dtype) {
  switch (dtype) {
    case kUint8: return 1;
    case kFloat32:
    case kInt32: return 4;
    case kFloat64:
    case kInt64: return 8;
    default: return 0;  // none that it knows
  }
}

Id serve_members() {
  Id id;
  UniqueFd listener = listen();
  std::random_device random;
  (void)std::snprintf(id.bytes, sizeof id.bytes, "%d fake-nccl-%08x%08x", port_of(listener.get()), random(), random());
  std::thread([at = std::make_shared<UniqueFd>(std::move(listener))] { tell_ports(at->get()); }).detach();
  return id;
}

}  // namespace monarch::fake_nccl

namespace monarch::tensor::own_nccl {

// ---- What NCCL's functions do.

Code CommTag::state() {
  std::unique_lock lock(mutex);
  if (failed_ != kSuccess) return failed_;
  if (!has_joined_ || done_works_ < awaited_) return kInProgress;
  if (!asked_) return kSuccess;
  if (asks_left_-- > 0) return kInProgress;
  const Queued work = std::move(*asked_);
  asked_.reset();
  lock.unlock();
  const bool in_turn = work.stream && enqueue(*work.stream, [this, work] { run_in_turn(work); });
  lock.lock();
  if (!in_turn) queue(work);
  if (!work.stream) awaited_ = queued_works_;
  return work.stream ? kSuccess : kInProgress;
}

Code CommTag::ask(std::optional<Stream> stream, Work work) {
  const std::lock_guard lock(mutex);
  if (failed_ != kSuccess) return failed_;
  if (!has_joined_ || asked_ || done_works_ < awaited_) fake_nccl::broken("work while other work is not enqueued yet");
  asked_ = Queued{std::move(work), stream};
  asks_left_ = static_cast<int>(random() % 4);
  return kInProgress;
}

void CommTag::queue(Queued work) {
  ++queued_works_;
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

void CommTag::run_in_turn(const Queued& work) {
  std::unique_lock lock(mutex);
  queue(work);
  changed_.wait(lock, [this, number = queued_works_] { return done_works_ >= number || has_stopped_; });
}

void CommTag::run() {
  if (join()) work();
  const std::lock_guard lock(mutex);
  has_stopped_ = true;
  changed_.notify_all();
}

void CommTag::work() {
  for (;;) {
    Queued next;
    {
      std::unique_lock lock(mutex);
      changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    if (!next.work()) return;
    const std::lock_guard lock(mutex);
    ++done_works_;
    changed_.notify_all();
    if (next.stream) ended(*next.stream);
  }
}

void CommTag::stop_and_join() {
  {
    const std::lock_guard lock(mutex);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
  peers_.clear();
  listener_.reset();
}

// ---- Joining.

bool CommTag::start() {
  listener_ = fake_nccl::listen();
  if (!listener_.valid()) return false;
  thread_ = std::thread([this] { run(); });
  return true;
}

bool CommTag::join() {
  peers_.resize(static_cast<std::size_t>(size));
  std::vector<std::uint16_t> ports(peers_.size());
  if (!hear_ports(ports)) return false;
  for (int other = 0; other < rank; ++other) {
    if (!reach(other, ports[static_cast<std::size_t>(other)])) return false;
  }
  for (int left = size - 1 - rank; left > 0; --left) {
    if (!accept_one()) return false;
  }
  // Nobody begins before each is connected with each.
  std::vector<char> all(1);
  if (!gathered(all, [](std::vector<char>&) {})) return false;
  const std::lock_guard lock(mutex);
  has_joined_ = true;
  return true;
}

bool CommTag::hear_ports(std::vector<std::uint16_t>& ports) {
  fake_nccl::Seat mine{rank, size, fake_nccl::port_of(listener_.get())};
  const UniqueFd root = fake_nccl::connect(static_cast<std::uint16_t>(std::atoi(id.bytes)));
  return move(root.get(), &mine, sizeof mine, true) &&
         move(root.get(), ports.data(), ports.size() * sizeof ports[0], false);
}

bool CommTag::reach(int other, std::uint16_t port) {
  peers_[static_cast<std::size_t>(other)] = fake_nccl::connect(port);
  const Hello mine{rank, device};
  Hello theirs;
  return write(other, &mine, sizeof mine) && read(other, &theirs, sizeof theirs) && is_another_gpu(theirs);
}

bool CommTag::accept_one() {
  pollfd waiting{listener_.get(), POLLIN, 0};
  while (::poll(&waiting, 1, 5) <= 0) {
    if (stop_) return false;
  }
  // Until it says who it is it has this member's own place, which is nobody's.
  UniqueFd& unknown = peers_[static_cast<std::size_t>(rank)];
  unknown = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  fake_nccl::send_at_once(unknown);
  Hello theirs;
  if (!read(rank, &theirs, sizeof theirs)) return false;
  peers_.at(static_cast<std::size_t>(theirs.rank)) = std::move(unknown);
  const Hello mine{rank, device};
  return write(theirs.rank, &mine, sizeof mine) && is_another_gpu(theirs);
}

bool CommTag::is_another_gpu(const Hello& theirs) {
  if (device < 0 || theirs.device != device) return true;
  const std::lock_guard lock(mutex);
  words = "Duplicate GPU detected : rank " + std::to_string(std::min(rank, theirs.rank)) + " and rank " +
          std::to_string(std::max(rank, theirs.rank)) + " both on CUDA device " + std::to_string(device);
  failed_ = kInvalidUsage;
  return false;
}

// ---- Bytes of peers.

bool CommTag::wait_for_stop(int milliseconds) {
  std::unique_lock lock(mutex);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return stop_.load(); });
}

bool CommTag::move(int fd, void* at, std::size_t bytes, bool out) {
  for (std::size_t done = 0; done < bytes;) {
    if (stop_) return false;
    pollfd ready{fd, static_cast<short>(out ? POLLOUT : POLLIN), 0};
    if (::poll(&ready, 1, 5) <= 0) continue;
    char* const from = static_cast<char*>(at) + done;
    const ssize_t moved = out ? ::send(fd, from, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : ::recv(fd, from, bytes - done, MSG_DONTWAIT);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0 || (errno != EAGAIN && errno != EINTR)) {
      if (!tells_deaths) {
        while (!wait_for_stop(1'000)) {
        }
        return false;
      }
      const std::lock_guard lock(mutex);
      words = "socketProgress: Connection closed by remote peer";
      failed_ = kRemoteError;
      return false;
    }
  }
  return true;
}

// ---- Work. All of it goes over member 0, but for what two send each other.

bool CommTag::gathered(std::vector<char>& all, const std::function<void(std::vector<char>&)>& make) {
  const std::size_t bytes = all.size();
  if (rank != 0) {
    std::size_t made = 0;
    if (!write(0, all.data(), bytes) || !read(0, &made, sizeof made)) return false;
    all.resize(made);
    return read(0, all.data(), made);
  }
  all.resize(bytes * static_cast<std::size_t>(size));
  for (int other = 1; other < size; ++other) {
    if (!read(other, all.data() + bytes * static_cast<std::size_t>(other), bytes)) return false;
  }
  make(all);
  const std::size_t made = all.size();
  for (int other = 1; other < size; ++other) {
    if (!write(other, &made, sizeof made) || !write(other, all.data(), made)) return false;
  }
  return true;
}

bool CommTag::reduced(std::size_t elements, int dtype, int op, std::vector<char>& all) {
  const std::size_t bytes = all.size();
  return gathered(all, [=, this](std::vector<char>& given) {
    for (int other = 1; other < size; ++other) {
      fake_nccl::reduce(given.data(), given.data() + bytes * static_cast<std::size_t>(other), elements, dtype, op);
    }
    given.resize(bytes);
    if (op == kAverage) fake_nccl::divide(given.data(), elements, dtype, size);
  });
}

}  // namespace monarch::tensor::own_nccl
