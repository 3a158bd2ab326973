#include "transport/zmq/context.h"

#include <poll.h>
#include <zmq.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "transport/base/sanitizers.h"
#include "transport/base/text.h"
#include "transport/loop/joining_thread.h"

#if MONARCH_THREAD_SANITIZER
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

ErrorCode code_of(int errno_value) {
  switch (errno_value) {
    case EAGAIN:
    case EADDRINUSE:
    case EMFILE: return ErrorCode::kBusy;
    case EHOSTUNREACH: return ErrorCode::kGone;
    case EINVAL:
    case EADDRNOTAVAIL:
    case ENODEV:
    case EACCES: return ErrorCode::kInvalid;
    default: return ErrorCode::kInternal;
  }
}

}  // namespace

Error zmq_error(std::string_view what, int errno_value) {
  if (errno_value < ZMQ_HAUSNUMERO) return errno_error(code_of(errno_value), what, errno_value);
  return Error{code_of(errno_value), text(what, ": ", zmq_strerror(errno_value))};
}

LibzmqFacts libzmq_facts() {
  LibzmqFacts facts;
  zmq_version(&facts.major, &facts.minor, &facts.patch);
  facts.curve = zmq_has("curve") == 1;
  return facts;
}

Status fit_for_use(const LibzmqFacts& libzmq) {
  if (ZMQ_MAKE_VERSION(libzmq.major, libzmq.minor, libzmq.patch) < kOldestVersion) {
    return Error{ErrorCode::kUnsupported, text("libzmq ", libzmq.major, ".", libzmq.minor, ".", libzmq.patch,
                                               " is older than 4.3.3, which ends CVE-2020-15166")};
  }
  if (!libzmq.curve) return Error{ErrorCode::kUnsupported, "this libzmq was built without CURVE"};
  return {};
}

std::string libzmq_version() {
  const LibzmqFacts facts = libzmq_facts();
  return text(facts.major, ".", facts.minor, ".", facts.patch);
}

namespace {

// WARNING: libzmq starts its threads with the first socket, and aborts the process where it cannot (src/thread.cpp).
Status have_room_for_threads(int count) {
  std::vector<std::unique_ptr<JoiningThread>> tried;
  for (int i = 0; i < count; ++i) {
    MONARCH_ASSIGN(auto thread, JoiningThread::start([](int stop) {
                     pollfd stopped{stop, POLLIN, 0};
                     (void)::poll(&stopped, 1, -1);
                   }));
    tried.push_back(std::move(thread));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ZmqContext>> ZmqContext::create(const Options& options) {
  MONARCH_TRY(fit_for_use(libzmq_facts()));
  MONARCH_TRY(have_room_for_threads(options.io_threads + 1));  // and the one that ends sockets
  void* native = zmq_ctx_new();
  if (native == nullptr) return zmq_error("making a zmq context", errno);
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
