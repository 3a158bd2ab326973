#pragma once

// ZmqContext: a libzmq context and its I/O threads. A socket names the thread that serves it, so that control traffic
// never waits behind bulk. It reads the library's version once: older ones have known holes.
//
// Thread: any. Lifetime: outlives every socket made from it, which the destructor asserts; it then waits for libzmq's
// threads to end, without lingering for unsent messages.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// What the library that is linked says of itself.
struct LibzmqFacts {
  int major = 0;
  int minor = 0;
  int patch = 0;
  bool curve = false;
};
LibzmqFacts libzmq_facts();
// kUnsupported where it has a known hole, or cannot encrypt: then nothing is opened.
Status fit_for_use(const LibzmqFacts& libzmq);
// Of the library that is linked: "4.3.4".
std::string libzmq_version();

// What a call of libzmq left in errno, with the limit that it met where it met one: "making a zmq socket: Too many open
// files (256 at most: ulimit -n)".
Error zmq_error(std::string_view what, int errno_value);

class ZmqContext {
 public:
  struct Options {
    int io_threads = 1;
  };
  static Result<std::unique_ptr<ZmqContext>> create(const Options& options);
  ~ZmqContext();
  ZmqContext(const ZmqContext&) = delete;
  ZmqContext& operator=(const ZmqContext&) = delete;

  int io_threads() const { return io_threads_; }
  void* native() const { return native_; }

 private:
  friend class ZmqSocket;
  ZmqContext(void* native, int io_threads) : native_(native), io_threads_(io_threads) {}

  void* native_;
  int io_threads_;
  // Sockets are made by the ZAP handler's owner and by the loops: a plain count would need a lock.
  std::atomic<int> open_sockets_ = 0;
};

}  // namespace monarch
