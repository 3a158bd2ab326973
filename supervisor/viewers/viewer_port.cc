#include "supervisor/viewers/viewer_port.h"

#include <map>
#include <utility>
#include <vector>

#include "supervisor/client/link/far_pipe.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/process/interface_addresses.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/zmq/context.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

namespace {

constexpr char kViewerUser[] = "viewer";
constexpr Duration kFarewell =
    Duration::seconds(1);  // for what is on its way to viewers, twice: until libzmq has it, and until it is sent

std::vector<std::string> addresses_of_this_machine() {
  std::vector<std::string> found;
  for (InterfaceAddress& each : interface_addresses()) {
    if (!each.link_local) found.push_back(std::move(each.address));
  }
  return found;
}

}  // namespace

// Made by the owner, then the thread's.
class ViewerPort::Worker {
 public:
  static Result<std::unique_ptr<Worker>> open(const ViewerPortOptions& options, ViewerDoorAddress& told);

  void run(int stop);
  Result<ListenerDoor> door() const { return link_->door(); }

 private:
  struct Viewer {
    std::unique_ptr<FarPipe> pipe;
    Instant heard;
  };

  Worker(std::unique_ptr<EventLoop> loop, std::string socket) : loop_(std::move(loop)), socket_(std::move(socket)) {}
  void on_message(InboundMessage&& message);
  void admit(LinkId link);
  void turn_away(LinkId link, const std::string& why);
  void say_alive(LinkId link);
  void say_end(LinkId link, const std::string& why);
  void sweep();
  void forget(LinkId link);
  void leave_when_done();
  void leave_after(Duration patience) {
    loop_->at(loop_->now() + patience, [this] { loop_->stop(); });
  }

  std::unique_ptr<EventLoop> loop_;
  std::string socket_;
  WatchId stop_watch_ = 0;
  bool leaving_ = false;
  std::unique_ptr<ZmqContext> context_;
  std::unique_ptr<ZapHandler> zap_;
  std::unique_ptr<ServerLink> link_;
  std::map<LinkId, Viewer> viewers_;
};

Result<std::unique_ptr<ViewerPort::Worker>> ViewerPort::Worker::open(const ViewerPortOptions& options,
                                                                     ViewerDoorAddress& told) {
  MONARCH_ASSIGN(auto loop, EventLoop::create());
  std::unique_ptr<Worker> worker(new Worker(std::move(loop), options.socket));
  MONARCH_ASSIGN(worker->context_, ZmqContext::create({.io_threads = 1}));
  MONARCH_ASSIGN(worker->zap_, ZapHandler::start(*worker->context_));
  MONARCH_TRY(zap_self_test(*worker->context_,
                            [zap = worker->zap_.get()](AllowTable table) { return zap->replace(std::move(table)); }));
  MONARCH_ASSIGN(const CurveKeyPair own, make_curve_key_pair());
  MONARCH_ASSIGN(const CurveKeyPair viewers, make_curve_key_pair());
  AllowTable table;
  table.users[viewers.public_key] = kViewerUser;
  MONARCH_TRY(worker->zap_->replace(std::move(table)));
  const ServerOptions server{.address = options.address, .ports = options.ports, .link = far_supervisor_options()};
  MONARCH_ASSIGN(worker->link_, ServerLink::bind(*worker->context_, server, own));
  told = {.addresses = addresses_of_this_machine(),
          .port = worker->link_->port(),
          .server_key = own.public_key.to_text(),
          .public_key = viewers.public_key.to_text(),
          .secret_key = viewers.secret_key.text_for_file()};
  return worker;
}

void ViewerPort::Worker::run(int stop) {
  ZmqLoop zmq_loop(*loop_);
  link_->attach(zmq_loop, [this](InboundMessage&& message) { on_message(std::move(message)); });
  const auto watch = loop_->watch(stop, Interest::kRead, [this](Readiness) {
    loop_->forget(stop_watch_);
    leave_after(kFarewell);
    leave_when_done();
  });
  MONARCH_ASSERT(watch.ok());
  stop_watch_ = *watch;
  sweep();
  zmq_loop.run();
  viewers_.clear();
  link_->linger(kFarewell);
  link_.reset();
}

void ViewerPort::Worker::on_message(InboundMessage&& message) {
  if (message.user_id != kViewerUser) return;
  const auto word = far_word(message.frames);
  if (word && word->kind == FarWordKind::kHello && !viewers_.contains(message.link)) return admit(message.link);
  const auto found = viewers_.find(message.link);
  // One that was turned away, and has not heard it.
  if (found == viewers_.end()) return say_end(message.link, "this connection has ended");
  found->second.heard = loop_->now();
  if (!word) {
    const Status taken = found->second.pipe->take(message.frames);
    if (!taken.ok()) turn_away(message.link, taken.error().message);
  } else if (word->kind == FarWordKind::kEnd) {
    found->second.pipe->finish();
  } else {
    say_alive(message.link);
  }
}

void ViewerPort::Worker::admit(LinkId link) {
  if (viewers_.size() >= kViewers) {
    log_warn("more than ", kViewers, " viewers of other machines, one was turned away");
    return turn_away(link, "too many viewers");
  }
  auto socket = connect_seqpacket(socket_);
  if (!socket.ok()) return turn_away(link, socket.error().message);
  auto pipe =
      FarPipe::create(*loop_, std::move(*socket),
                      {.send = [this, link](std::vector<ZmqFrame>& frames) { return link_->send(link, frames); },
                       .on_end = [this, link](const Error&) { forget(link); }});
  if (!pipe.ok()) return turn_away(link, pipe.error().message);
  viewers_.emplace(link, Viewer{.pipe = std::move(*pipe), .heard = loop_->now()});
  say_alive(link);
}

void ViewerPort::Worker::say_alive(LinkId link) {
  std::vector<ZmqFrame> sign = far_message({});
  (void)link_->send(link, sign);  // a full link is a sign as well
}

void ViewerPort::Worker::say_end(LinkId link, const std::string& why) {
  std::vector<ZmqFrame> last = far_message({.kind = FarWordKind::kEnd, .why = why});
  (void)link_->send(link, last);  // who does not hear it is told again as soon as it says anything
}

void ViewerPort::Worker::turn_away(LinkId link, const std::string& why) {
  say_end(link, why);
  forget(link);
}

void ViewerPort::Worker::forget(LinkId link) {
  viewers_.erase(link);
  if (leaving_) leave_when_done();
}

// The supervisor's socket is closed by then, so all that came from it ends.
void ViewerPort::Worker::leave_when_done() {
  leaving_ = true;
  if (viewers_.empty()) loop_->stop();
}

// A viewer that was killed says nothing.
void ViewerPort::Worker::sweep() {
  std::vector<LinkId> silent;
  for (const auto& [link, viewer] : viewers_) {
    if (loop_->now() - viewer.heard > kFarSilence) silent.push_back(link);
  }
  for (const LinkId link : silent) turn_away(link, "it was silent for too long");
  loop_->at(loop_->now() + kFarSignPeriod, [this] { sweep(); });
}

Result<std::unique_ptr<ViewerPort>> ViewerPort::start(const ViewerPortOptions& options) {
  std::unique_ptr<ViewerPort> port(new ViewerPort());
  MONARCH_ASSIGN(auto worker, Worker::open(options, port->address_));
  MONARCH_ASSIGN(port->door_, worker->door());
  MONARCH_ASSIGN(port->thread_, JoiningThread::start([worker = std::move(worker)](int stop) { worker->run(stop); }));
  return port;
}

}  // namespace monarch
