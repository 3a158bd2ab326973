#pragma once

// A communicator of the fake libnccl.so.2 (fake_libnccl.cc): members connected each with each, and the work that they
// do together, one after the other, on a thread of its own.
//
// Thread: any. Lifetime: it is never freed, so that a call after its abort is told.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/tensor/nccl/nccl_own.h"

namespace monarch::fake_nccl {

// The process ends: whoever calls NCCL does what nobody may.
[[noreturn]] void broken(const char* what);

std::size_t bytes_of(int dtype);  // 0: an element that it does not know

// Who makes an id tells its members where each of them listens, on a thread that it has from then on.
tensor::own_nccl::Id serve_members();

}  // namespace monarch::fake_nccl

struct monarch::tensor::own_nccl::CommTag {
  using Work = std::function<bool()>;  // false: it was stopped, or has heard of a death

  // False: it cannot listen. Else it begins to join.
  bool start();
  // What the asynchronous error is. Whoever asks often enough has his work enqueued.
  Code state();
  // `stream`: nothing where it is not in the order of one.
  Code ask(std::optional<Stream> stream, Work work);
  void stop_and_join();

  bool read(int other, void* at, std::size_t bytes) { return move(peer(other), at, bytes, false); }
  bool write(int other, const void* at, std::size_t bytes) {
    return move(peer(other), const_cast<void*>(at), bytes, true);
  }
  // Each gives what is in `all`. Then what they gave, one after the other, is in all of them, as member 0 has made it.
  bool gathered(std::vector<char>& all, const std::function<void(std::vector<char>&)>& make);
  bool reduced(std::size_t elements, int dtype, int op, std::vector<char>& all);

  Id id;
  int rank = 0;
  int size = 1;
  int device = -1;  // of the context in which it was begun; -1: nobody knows
  bool tells_deaths = false;
  // The call is for this work's turn in the stream, and comes back when it has ended. False: the stream has no turns.
  std::function<bool(Stream, std::function<void()>)> enqueue;
  std::function<void(Stream)> ended;
  std::minstd_rand random;
  std::atomic<bool> gone{false};
  std::string words;  // of the last error; guarded by mutex, as all behind it
  std::mutex mutex;

 private:
  struct Hello {
    int rank = 0;
    int device = -1;
  };
  struct Queued {
    Work work;
    std::optional<Stream> stream;
  };

  void queue(Queued work);  // mutex is held
  void run_in_turn(const Queued& work);
  void run();
  void work();
  bool join();
  bool hear_ports(std::vector<std::uint16_t>& ports);
  bool reach(int other, std::uint16_t port);
  bool accept_one();
  bool is_another_gpu(const Hello& theirs);
  bool move(int fd, void* at, std::size_t bytes, bool out);
  bool wait_for_stop(int milliseconds);
  int peer(int other) const { return peers_.at(static_cast<std::size_t>(other)).get(); }

  UniqueFd listener_;
  std::vector<UniqueFd> peers_;  // by rank
  std::atomic<bool> stop_{false};
  std::condition_variable changed_;
  Code failed_ = kSuccess;
  bool has_joined_ = false;
  std::optional<Queued> asked_;  // and not enqueued yet
  int asks_left_ = 0;
  int queued_works_ = 0;
  int done_works_ = 0;
  int awaited_ = 0;  // work of no stream is under way until it is done
  bool has_stopped_ = false;
  std::deque<Queued> queue_;
  std::thread thread_;
};
