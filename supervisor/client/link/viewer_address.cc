#include "supervisor/client/link/viewer_address.h"

#include <sys/socket.h>

#include <array>
#include <future>
#include <vector>

#include "supervisor/client/link/far_pipe.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/context.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

namespace {

constexpr Duration kConnects = Duration::seconds(3);
constexpr Duration kTryAgain = Duration::milliseconds(100);
constexpr Duration kLastWord = Duration::milliseconds(200);
constexpr Duration kLastFrames = Duration::seconds(1);  // of a link that is lost, for the viewer to read
// Bytes for a viewer that does not read; then the link is not read either.
constexpr std::size_t kMayWait = 1U << 20U;

// The thread's own state; made, used and destroyed by it.
class FarCarrier {
 public:
  FarCarrier(const ViewerAddress& address, UniqueFd socket, int stop)
      : address_(address), socket_(std::move(socket)), stop_(stop) {}

  // `known` hears once whether it stands.
  void run(std::promise<Status> known, Duration deadline);

 private:
  struct Candidate {
    ClientOptions server;
    std::unique_ptr<ClientLink> link;
    ZmqWatchId watch = 0;
    TimerId again = 0;
    bool failed = false;
  };
  Status open(Duration deadline);
  Status try_all(const ViewerDoorAddress& door);
  Status try_one(Candidate& candidate);
  bool take_event(Candidate& candidate);
  void try_again(Candidate& candidate);
  void fail(Candidate& candidate);
  bool take_event();
  bool take_message();
  void pass_on(std::vector<ZmqFrame> frames);
  void on_drained();
  void stand(Candidate& candidate);
  void watch_messages();
  void read_the_rest();
  void give_sign();
  void tell(Status status);
  void leave();

  const ViewerAddress& address_;
  UniqueFd socket_;
  int stop_;  // readable: the end
  std::optional<std::promise<Status>> known_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ZmqContext> context_;
  std::optional<ZmqLoop> zmq_loop_;
  std::optional<CurveKeyPair> keys_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
  std::unique_ptr<ClientLink> link_;
  ZmqWatchId messages_ = 0;  // 0: not read, as the viewer does not read either
  ZmqWatchId monitor_ = 0;
  std::optional<std::vector<ZmqFrame>> held_;
  std::unique_ptr<FarPipe> pipe_;
  bool lost_ = false;  // the link is, and nothing more comes
  bool rest_ = false;  // of it there is more to read
  Instant heard_;
};

void FarCarrier::tell(Status status) {
  if (!known_) return;
  known_->set_value(std::move(status));
  known_.reset();
}

Status FarCarrier::open(Duration deadline) {
  MONARCH_ASSIGN(loop_, EventLoop::create());
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 1}));
  zmq_loop_.emplace(*loop_);
  const auto stop = loop_->watch(stop_, Interest::kRead, [this](Readiness) {
    if (link_ != nullptr) {
      std::vector<ZmqFrame> last = far_message({.kind = FarWordKind::kEnd, .why = "the viewer has gone"});
      (void)link_->send(last);
    }
    leave();
  });
  if (!stop.ok()) return stop.error();
  loop_->at(loop_->now() + deadline, [this, deadline] {
    if (!known_) return;
    tell(Error{ErrorCode::kGone, text("nobody answers for ", address_.host, " at ", join(address_.far->addresses, ", "),
                                      ", port ", address_.far->port, ", within ", to_text(deadline))});
    loop_->stop();
  });
  return try_all(*address_.far);
}

Status FarCarrier::try_all(const ViewerDoorAddress& door) {
  const auto server = CurvePublicKey::parse(door.server_key);
  const auto own = CurvePublicKey::parse(door.public_key);
  auto secret = CurveSecretKey::parse(door.secret_key);
  if (!server.ok() || !own.ok() || !secret.ok()) {
    return Error{ErrorCode::kGone, text("the keys that the supervisor on ", address_.host, " has told are none")};
  }
  keys_.emplace(CurveKeyPair{*own, std::move(*secret)});
  Error last{ErrorCode::kGone, text("the supervisor on ", address_.host, " has told no address")};
  for (const std::string& address : door.addresses) {
    candidates_.push_back(std::make_unique<Candidate>());
    candidates_.back()->server = {
        .address = address, .port = door.port, .server_key = *server, .link = far_viewer_options()};
    const Status tried = try_one(*candidates_.back());
    if (tried.ok()) continue;
    last = tried.error();
    candidates_.pop_back();
  }
  if (candidates_.empty()) return last;
  return {};
}

Status FarCarrier::try_one(Candidate& candidate) {
  MONARCH_ASSIGN(candidate.link, ClientLink::connect(*context_, candidate.server, *keys_));
  candidate.watch =
      zmq_loop_->watch(candidate.link->monitor_socket(), [this, &candidate] { return take_event(candidate); });
  return {};
}

bool FarCarrier::take_event(Candidate& candidate) {
  const auto event = candidate.link->next_event();
  if (!event) return false;
  if (*event == ClientEvent::kConnected && link_ == nullptr) {
    loop_->defer([this, &candidate] { stand(candidate); });
    return false;
  }
  if (*event == ClientEvent::kConnected) return true;
  zmq_loop_->forget(candidate.watch);
  if (*event != ClientEvent::kRefused) try_again(candidate);
  if (*event == ClientEvent::kRefused || *event == ClientEvent::kHandshakeFailed) fail(candidate);
  return false;
}

void FarCarrier::try_again(Candidate& candidate) {
  candidate.again = loop_->at(loop_->now() + kTryAgain, [this, &candidate] {
    candidate.again = 0;
    if (const Status tried = try_one(candidate); !tried.ok()) fail(candidate);
  });
}

void FarCarrier::fail(Candidate& candidate) {
  candidate.failed = true;
  for (const auto& each : candidates_) {
    if (!each->failed) return;
  }
  tell(Error{ErrorCode::kGone, text(address_.host, " has a supervisor with other keys by now")});
  loop_->stop();
}

void FarCarrier::stand(Candidate& candidate) {
  if (link_ != nullptr) return;
  link_ = std::move(candidate.link);
  zmq_loop_->forget(candidate.watch);
  for (const auto& other : candidates_) {
    loop_->cancel(other->again);
    if (other->link != nullptr) zmq_loop_->forget(other->watch);
  }
  candidates_.clear();
  auto pipe = FarPipe::create(*loop_, std::move(socket_),
                              {.send = [this](std::vector<ZmqFrame>& frames) { return link_->send(frames); },
                               .on_end = [this](const Error&) { leave(); },
                               .on_drained = [this] { on_drained(); }});
  if (!pipe.ok()) {
    tell(pipe.error());
    return loop_->stop();
  }
  pipe_ = std::move(*pipe);
  monitor_ = zmq_loop_->watch(link_->monitor_socket(), [this] { return take_event(); });
  watch_messages();
  std::vector<ZmqFrame> hello = far_message({.kind = FarWordKind::kHello});
  (void)link_->send(hello);  // its answer tells
  loop_->at(loop_->now() + kFarSignPeriod, [this] { give_sign(); });
}

void FarCarrier::watch_messages() {
  heard_ = loop_->now();
  messages_ = zmq_loop_->watch(link_->socket(), [this] { return take_message(); });
}

bool FarCarrier::take_event() {
  const auto event = link_->next_event();
  if (!event) return false;
  if (*event == ClientEvent::kConnected) return true;
  zmq_loop_->forget(std::exchange(monitor_, 0));
  if (messages_ != 0) zmq_loop_->forget(std::exchange(messages_, 0));
  lost_ = true;
  loop_->at(loop_->now() + kLastFrames, [this] { leave(); });
  read_the_rest();
  return false;
}

// As fast as the viewer reads it.
void FarCarrier::read_the_rest() {
  while (!held_ && pipe_->waiting() < kMayWait) {
    if (!take_message()) return pipe_->finish();
  }
  rest_ = true;
}

bool FarCarrier::take_message() {
  auto frames = link_->receive();
  if (!frames) return false;
  heard_ = loop_->now();
  if (const auto word = far_word(*frames)) {
    if (word->kind == FarWordKind::kEnd) {
      tell(Error{ErrorCode::kGone, text("the supervisor on ", address_.host, " does not let us in: ", word->why)});
      pipe_->finish();
    } else {
      tell({});
    }
    return true;
  }
  pass_on(std::move(*frames));
  return true;
}

// One that does not fit any more waits here, and the rest in the link.
void FarCarrier::pass_on(std::vector<ZmqFrame> frames) {
  const Status taken = pipe_->take(frames);
  if (!taken.ok() && taken.error().code != ErrorCode::kBusy) return leave();
  if (!taken.ok()) held_ = std::move(frames);
  if ((held_ || pipe_->waiting() >= kMayWait) && messages_ != 0) zmq_loop_->forget(std::exchange(messages_, 0));
}

void FarCarrier::on_drained() {
  if (held_) pass_on(*std::exchange(held_, std::nullopt));
  if (held_) return;
  if (std::exchange(rest_, false)) return read_the_rest();
  if (lost_) return;
  if (messages_ == 0) watch_messages();
}

void FarCarrier::give_sign() {
  // One that does not read hears nothing, and is not to be told that the other side is silent.
  if (lost_) return;
  if (messages_ != 0 && loop_->now() - heard_ > kFarSilence) return leave();
  std::vector<ZmqFrame> sign = far_message({});
  (void)link_->send(sign);  // a full link is a sign as well
  loop_->at(loop_->now() + kFarSignPeriod, [this] { give_sign(); });
}

// What the pipe said last is on its way.
void FarCarrier::leave() {
  if (link_ != nullptr) link_->linger(kLastWord);
  loop_->stop();
}

void FarCarrier::run(std::promise<Status> known, Duration deadline) {
  known_ = std::move(known);
  if (const Status opened = open(deadline); !opened.ok()) return tell(opened);
  zmq_loop_->run();
  tell(Error{ErrorCode::kGone, "the viewer has gone"});
}

Result<std::array<UniqueFd, 2>> make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return errno_error("socketpair", errno);
  }
  return std::array<UniqueFd, 2>{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

ViewerAddress viewer_address(const Endpoint& endpoint) {
  ViewerAddress address(endpoint.socket);
  address.host = endpoint.host;
  if (endpoint.viewers && endpoint.host != name_of_this_machine()) address.far = endpoint.viewers;
  return address;
}

Result<std::unique_ptr<FarLink>> FarLink::connect(const ViewerAddress& address, Duration deadline) {
  MONARCH_ASSIGN(auto ends, make_pair());
  std::unique_ptr<FarLink> link(new FarLink(std::move(ends[0])));
  std::promise<Status> known;
  std::future<Status> answer = known.get_future();
  auto carry = [address, deadline, end = std::move(ends[1]), known = std::move(known)](int stop) mutable {
    FarCarrier carrier(address, std::move(end), stop);
    carrier.run(std::move(known), deadline);
  };
  MONARCH_ASSIGN(link->thread_, JoiningThread::start(std::move(carry)));
  MONARCH_TRY(answer.get());
  return link;
}

Result<ViewerSocket> connect_viewer(const ViewerAddress& address) {
  ViewerSocket made;
  if (!address.far) {
    auto socket = connect_seqpacket(address.socket);
    if (!socket.ok() && !address.host.empty() && address.host != name_of_this_machine()) {
      return Error{socket.error().code, text("its supervisor is on ", printable(address.host),
                                             ", and takes no viewers of other machines: ", socket.error().message)};
    }
    MONARCH_ASSIGN(made.socket, std::move(socket));
    return made;
  }
  MONARCH_ASSIGN(made.far, FarLink::connect(address, kConnects));
  made.socket = made.far->take_socket();
  return made;
}

}  // namespace monarch
