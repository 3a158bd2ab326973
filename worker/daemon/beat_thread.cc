#include "worker/daemon/beat_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"
#include "transport/zmq/context.h"
#include "transport/zmq/link_message.h"
#include "transport/zmq/reconnecting_client.h"
#include "transport/zmq/zmq_loop.h"
#include "worker/core/daemon_core_beats.h"
#include "worker/daemon/heard_frame.h"

namespace monarch::daemon {
namespace {

constexpr int kNiceWithoutRealTime = -10;
constexpr Duration kLastLinger = Duration::milliseconds(200);  // on its way out of this process
constexpr Duration kHelloPause = Duration::milliseconds(100);

// Without the privilege for either, beats compete like everybody else: nothing to say, the supervisor's margins allow
// it.
void raise_priority() {
  const sched_param lowest{.sched_priority = 1};
  if (::pthread_setschedparam(::pthread_self(), SCHED_RR, &lowest) == 0) return;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceWithoutRealTime);
}

// The thread's own state; made, used and destroyed by it.
class Beating {
 public:
  Beating(EventLoop& loop, const BeatOptions& options, const CurveKeyPair& keys, const TurnStamp& main_turn,
          Inbox<FromBeat>& to_main, Inbox<ToBeat>& orders)
      : loop_(loop),
        options_(options),
        keys_(keys),
        main_turn_(main_turn),
        to_main_(to_main),
        orders_(orders),
        schedule_(options.heartbeat, options.daemon_starts),
        random_(options.seed) {}

  void run();
  void take_orders();

 private:
  Status open();
  void on(NextBeat&& next);
  void on(HelloContent&& content);
  void on(SendFrame&& order);
  void on_message(const std::vector<ZmqFrame>& frames);
  void on_connected();
  void beat_if_due();
  void arm();
  bool say_hello();
  template <class Message>
  bool send(const Message& message) {
    return send({.type = number_of<Message>(), .job = options_.job}, encode_payload(message));
  }
  bool send(FrameHeader header, std::string payload);
  void tell_main(FromBeat value);

  EventLoop& loop_;
  const BeatOptions options_;
  const CurveKeyPair& keys_;
  const TurnStamp& main_turn_;
  Inbox<FromBeat>& to_main_;
  Inbox<ToBeat>& orders_;
  BeatSchedule schedule_;
  std::mt19937_64 random_;
  std::unique_ptr<ZmqContext> context_;
  ZmqLoop zmq_loop_{loop_};
  std::unique_ptr<ReconnectingClient> client_;
  std::optional<BeatContent> content_;
  std::optional<Hello> hello_;
  bool hello_owed_ = true;
  TimerId timer_ = 0;
  std::uint64_t sent_frames_ = 0;
  FramesDropped dropped_;
};

Status Beating::open() {
  // Made here, so that libzmq's I/O thread inherits this thread's priority.
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 1}));
  ReconnectingClient::Handlers handlers;
  handlers.on_message = [this](std::vector<ZmqFrame>&& frames) { on_message(frames); };
  handlers.on_connected = [this] { on_connected(); };
  handlers.on_disconnected = [this] { tell_main(LinkDown{}); };
  handlers.on_refused = [this](const Error& why) { tell_main(LinkRefused{why}); };
  MONARCH_ASSIGN(client_, ReconnectingClient::start(*context_, zmq_loop_, options_.control, keys_, options_.seed,
                                                    std::move(handlers)));
  return {};
}

void Beating::run() {
  if (const Status opened = open(); !opened.ok()) {
    // A daemon that cannot beat is worth nothing; its keeper starts another one.
    log_error("beating: ", opened.error().message);
    std::abort();
  }
  zmq_loop_.run();
}

void Beating::take_orders() {
  for (ToBeat& order : orders_.take_all()) {
    std::visit([this](auto& each) { on(std::move(each)); }, order);
  }
  beat_if_due();
}

void Beating::on(NextBeat&& next) {
  if (next.at_once || !content_) schedule_.hurry(loop_.now());
  content_ = std::move(next.content);
}

void Beating::on(HelloContent&& content) {
  if (content.again) {
    hello_owed_ = true;
    schedule_.hurry(loop_.now());
  }
  hello_ = std::move(content.hello);
}

void Beating::on(SendFrame&& order) {
  // Lost without a link or with a full queue: the supervisor asks again for what it misses.
  (void)send(order.frame.header, std::move(order.frame.payload));
  if (order.last) client_->linger(kLastLinger);
}

void Beating::on_message(const std::vector<ZmqFrame>& frames) {
  auto heard = heard_from_link(frames, [this](std::uint64_t seq) { return schedule_.answered(seq, loop_.now()); });
  if (heard) return tell_main(std::move(heard).value());
  ++dropped_.malformed;
  dropped_.last_malformed = heard.error().message;
}

void Beating::on_connected() {
  tell_main(LinkUp{});
  hello_owed_ = true;
  schedule_.hurry(loop_.now());
  beat_if_due();
}

void Beating::beat_if_due() {
  // Without a link there is nobody to beat to; the next one starts with a beat.
  if (!client_->connected() || !content_ || !hello_) return;
  if (schedule_.due(loop_.now()) && (!hello_owed_ || say_hello())) {
    const double jitter = std::uniform_real_distribution<double>(-1.0, 1.0)(random_);
    const Duration last_turn = Duration::nanoseconds(main_turn_.load(std::memory_order_relaxed));
    Beat beat;
    beat.sent_at = loop_.now();  // of this turn's start: earlier than the send, so a lease can only be shorter
    beat.acked_seq = schedule_.highest_answered();
    beat.seq = schedule_.send(beat.sent_at, jitter);
    beat.loop_age = std::max(Duration::zero(), beat.sent_at.since_boot() - last_turn);
    beat.round_trip = schedule_.round_trip();
    beat.content = *content_;
    // A full queue loses this beat; the next one says all of it.
    (void)send(beat);
  }
  arm();
}

void Beating::arm() {
  loop_.cancel(timer_);
  // A hello that did not go keeps its beat waiting.
  const Duration pause = hello_owed_ ? kHelloPause : BeatSchedule::kFloor;
  timer_ = loop_.at(std::max(schedule_.next_due(), loop_.now() + pause), [this] { beat_if_due(); });
}

bool Beating::say_hello() {
  hello_owed_ = !send(*hello_);
  return !hello_owed_;
}

bool Beating::send(FrameHeader header, std::string payload) {
  if (hello_) header.term = hello_->promised;
  header.seq = ++sent_frames_;
  std::vector<ZmqFrame> frames = link_message(header, std::move(payload));
  return client_->send(frames).ok();
}

void Beating::tell_main(FromBeat value) {
  if (dropped_.malformed + dropped_.overflow > 0 && to_main_.put(dropped_)) dropped_ = {};
  if (!to_main_.put(std::move(value))) ++dropped_.overflow;
}

}  // namespace

Result<std::unique_ptr<BeatThread>> start_beat_thread(const BeatOptions& options, const CurveKeyPair& keys,
                                                      const TurnStamp& main_turn, Inbox<FromBeat>& to_main) {
  return BeatThread::start(kBeatOrders, [options, &keys, &main_turn, &to_main](EventLoop& loop, Inbox<ToBeat>& orders) {
    raise_priority();
    return Beating(loop, options, keys, main_turn, to_main, orders);
  });
}

}  // namespace monarch::daemon
