#include "transport/zmq/zap.h"

#include <pthread.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"

namespace monarch {

namespace {

constexpr const char* kEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kTablesWaiting = 256;
constexpr int kRequestsPerTurn = 64;

// A request of RFC 27 as a ROUTER gets it: routing id, empty, version, request id, domain, address, identity, mechanism
// and, of CURVE, the client's key.
enum RequestFrame : std::size_t {
  kRouting,
  kEmpty,
  kVersion,
  kRequestId,
  kDomain,
  kAddress,
  kIdentity,
  kMechanism,
  kKey
};
constexpr std::size_t kRequestFrames = 9;

[[noreturn]] void die(std::string_view why) {
  const std::string line =
      text("monarch: the thread that checks keys ended (", why, "); without it peers could not be told apart\n");
  (void)!::write(STDERR_FILENO, line.data(), line.size());  // aborting either way
  std::abort();
}

// One request whose answer may come later.
struct Asked {
  ZmqFrame routing;
  ZmqFrame request_id;
};

class Server {
 public:
  Server(ZmqSocket& socket, const Admission::Options& options) : socket_(socket), admission_(options) {}

  Instant next_due() const { return admission_.next_due(); }
  void table(AllowTable table) { answer(admission_.replace(std::move(table))); }
  void expire(Instant now) { answer(admission_.expire(now)); }

  // False: there was no request.
  bool take_one(Instant now) {
    std::vector<ZmqFrame> frames;
    switch (socket_.receive(frames, kRequestFrames)) {
      case ZmqSocket::Taken::kNothing: return false;
      case ZmqSocket::Taken::kTooManyFrames: return true;  // not from libzmq: it has nobody to tell
      case ZmqSocket::Taken::kMessage: break;
    }
    if (frames.size() <= kRequestId) return true;
    const std::uint64_t ticket = next_ticket_++;
    const auto key = key_of(frames);
    asked_.emplace(ticket, Asked{std::move(frames[kRouting]), std::move(frames[kRequestId])});
    if (!key) {
      answer({Admission::Answer{ticket, std::nullopt}});
    } else if (auto now_known = admission_.ask(ticket, *key, now)) {
      answer({std::move(*now_known)});
    }
    return true;
  }

 private:
  static std::optional<CurvePublicKey> key_of(const std::vector<ZmqFrame>& frames) {
    if (frames.size() != kRequestFrames || frames[kVersion].bytes() != "1.0") return std::nullopt;
    if (frames[kDomain].bytes() != kZapDomain || frames[kMechanism].bytes() != "CURVE") return std::nullopt;
    auto key = CurvePublicKey::from_bytes(frames[kKey].bytes());
    if (!key) return std::nullopt;
    return *key;
  }

  // WARNING: 400 ends the client's session for good, and 300 makes it wait without a word (RFC 27, curve_client.cpp).
  // We answer 200 or 400; the client opens a new socket.
  void answer(const std::vector<Admission::Answer>& answers) {
    for (const auto& answer : answers) {
      auto node = asked_.extract(answer.ticket);
      std::vector<ZmqFrame> reply;
      reply.push_back(std::move(node.mapped().routing));
      reply.push_back(ZmqFrame::copy(""));
      reply.push_back(ZmqFrame::copy("1.0"));
      reply.push_back(std::move(node.mapped().request_id));
      reply.push_back(ZmqFrame::copy(answer.user_id ? "200" : "400"));
      reply.push_back(ZmqFrame::copy(answer.user_id ? "OK" : "not a key of this job"));
      reply.push_back(ZmqFrame::copy(answer.user_id.value_or("")));
      reply.push_back(ZmqFrame::copy(""));
      // A peer that left takes its answer with it: this ROUTER is not mandatory, and drops it.
      (void)socket_.send(reply);
    }
  }

  ZmqSocket& socket_;
  Admission admission_;
  std::uint64_t next_ticket_ = 1;
  std::map<std::uint64_t, Asked> asked_;  // bounded by Admission: what it does not keep waiting is answered at once
};

}  // namespace

Result<std::unique_ptr<ZapHandler>> ZapHandler::start(ZmqContext& context, const Admission::Options& options) {
  MONARCH_ASSIGN(auto commands, Commands::create(kTablesWaiting));
  MONARCH_ASSIGN(auto socket, ZmqSocket::create(context, ZMQ_ROUTER));
  MONARCH_TRY(socket->bind(kEndpoint));
  std::unique_ptr<ZapHandler> made(new ZapHandler(std::move(commands), std::move(socket)));
  try {
    made->thread_ = std::thread([self = made.get(), options] { run(*self->commands_, *self->socket_, options); });
  } catch (const std::system_error& error) {
    return thread_error(error.code().value());
  }
  return made;
}

ZapHandler::~ZapHandler() {
  if (!thread_.joinable()) return;  // it could not be started
  // Full only if the thread is stuck; then joining would wait for ever.
  if (!commands_->put(Stop{})) die("it takes no commands");
  thread_.join();
}

Status ZapHandler::replace(AllowTable table) {
  if (commands_->put(std::move(table))) return {};
  return Error{ErrorCode::kBusy,
               text("the thread that checks keys has not taken the last ", kTablesWaiting, " tables")};
}

void ZapHandler::run(Commands& commands, ZmqSocket& socket, Admission::Options options) {
  (void)::pthread_setname_np(::pthread_self(), "zap");  // for people who look at threads
  Server server(socket, options);
  for (;;) {
    std::array<zmq_pollitem_t, 2> items{
        {{socket.native(), 0, ZMQ_POLLIN, 0}, {nullptr, commands.descriptor(), ZMQ_POLLIN, 0}}};
    const long wait = EventLoop::wait_milliseconds(boot_now(), server.next_due());
    if (zmq_poll(items.data(), static_cast<int>(items.size()), wait) < 0 && errno != EINTR) die(zmq_strerror(errno));
    const Instant now = boot_now();
    // Tables first: a key that both arrive with is known at once.
    for (Command& command : commands.take_all()) {
      if (std::holds_alternative<Stop>(command)) return;
      server.table(std::move(std::get<AllowTable>(command)));
    }
    for (int i = 0; i < kRequestsPerTurn && server.take_one(now); ++i) {
    }
    server.expire(now);
  }
}

}  // namespace monarch
