#include "transport/zmq/context.h"

#include <zmq.h>

#include <cerrno>

#include "transport/base/text.h"

#if defined(__SANITIZE_THREAD__)
#define MONARCH_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MONARCH_THREAD_SANITIZER 1
#endif
#endif

#if defined(MONARCH_THREAD_SANITIZER)
// The system's libzmq and libsodium are not instrumented and synchronise by instructions of their own, so that every
// message passed between their threads looks like a race. Here, because whoever uses libzmq makes a context.
extern "C" const char* __tsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\ncalled_from_lib:libsodium.so\nrace:libzmq.so\nrace:libsodium.so\n";
}
#endif

namespace monarch {

namespace {

// CVE-2020-15166: before 4.3.3 a raw TCP connection could stop a CURVE server.
constexpr int kOldestVersion = ZMQ_MAKE_VERSION(4, 3, 3);

}  // namespace

std::string libzmq_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  return text(major, ".", minor, ".", patch);
}

Result<std::unique_ptr<ZmqContext>> ZmqContext::create(const Options& options) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  if (ZMQ_MAKE_VERSION(major, minor, patch) < kOldestVersion) {
    return Error{ErrorCode::kUnsupported,
                 text("libzmq ", major, ".", minor, ".", patch, " is older than 4.3.3, which ends CVE-2020-15166")};
  }
  if (zmq_has("curve") != 1) return Error{ErrorCode::kUnsupported, "this libzmq was built without CURVE"};
  void* native = zmq_ctx_new();
  if (native == nullptr) return Error{ErrorCode::kInternal, text("making a zmq context: ", zmq_strerror(errno))};
  if (zmq_ctx_set(native, ZMQ_IO_THREADS, options.io_threads) != 0) {
    (void)zmq_ctx_term(native);  // nothing is open: it cannot wait
    return Error{ErrorCode::kInvalid, text(options.io_threads, " I/O threads: ", zmq_strerror(errno))};
  }
  return std::unique_ptr<ZmqContext>(new ZmqContext(native, options.io_threads));
}

ZmqContext::~ZmqContext() {
  MONARCH_ASSERT_BECAUSE(open_sockets_.load() == 0, "zmq_ctx_term(3) waits for ever while a socket is open");
  while (zmq_ctx_term(native_) != 0 && errno == EINTR) {
  }
}

}  // namespace monarch
