#include "worker/daemon/log_thread.h"

#include <malloc.h>

#include <cstdlib>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/output.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"
#include "transport/zmq/context.h"
#include "transport/zmq/link_message.h"
#include "transport/zmq/reconnecting_client.h"
#include "transport/zmq/zmq_loop.h"
#include "worker/daemon/promise_file.h"

namespace monarch::daemon {
namespace {

constexpr Duration kTrimPeriod = Duration::seconds(2);
constexpr std::size_t kWaitingStacks = 64;  // answers; the oldest is dropped, and who asked for it has its deadline

// The thread's own state; made, used and destroyed by it.
class Logging final : public OutputSink {
 public:
  Logging(EventLoop& loop, const LogOptions& options, const CurveKeyPair& keys, Inbox<FromLog>& to_main,
          Inbox<ToLog>& orders)
      : loop_(loop), options_(options), keys_(keys), to_main_(to_main), orders_(orders) {}

  void run();
  void take_orders();

  bool wanted() const override { return client_ != nullptr && client_->connected() && !blocked_; }
  bool offer(const Incarnation& incarnation, Output&& output) override;
  bool offer_unkept(const Incarnation& incarnation, Output&& output) override;
  bool gone(const Incarnation& incarnation, const OutputGone& gone) override;

 private:
  Status open();
  template <class Message>
  bool say(const Message& message, const Incarnation& incarnation) {
    return say(number_of<Message>(), incarnation, encode_payload(message));
  }
  bool say(std::uint16_t type, const Incarnation& incarnation, std::string payload);
  void hear(const std::vector<ZmqFrame>& frames);
  void unblock();
  void trim_later();
  void on(LogSource&& source);
  void on(RankEnded&& order) { writer_->rank_ended(order.incarnation); }
  void on(RankForgotten&& order) { writer_->forget(order.incarnation); }
  void on(MakePromise&& order);
  void on(RemoveState&& order);
  void on(SayStacks&& order);
  void flush_stacks();
  // For answers that must arrive: kept until the main loop has room.
  void answer(FromLog value);
  void flush_answers();

  EventLoop& loop_;
  const LogOptions options_;
  const CurveKeyPair& keys_;
  Inbox<FromLog>& to_main_;
  Inbox<ToLog>& orders_;
  std::unique_ptr<ZmqContext> context_;
  ZmqLoop zmq_loop_{loop_};
  std::unique_ptr<ReconnectingClient> client_;
  std::optional<LogWriter> writer_;
  bool blocked_ = false;  // the link's queue is full
  std::uint64_t sent_frames_ = 0;
  bool trim_armed_ = false;
  std::deque<FromLog> answers_;  // at most one for each order
  std::deque<SayStacks> stacks_;
};

Status Logging::open() {
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 1}));
  ReconnectingClient::Handlers handlers;
  handlers.on_message = [this](std::vector<ZmqFrame>&& frames) { hear(frames); };
  handlers.on_connected = [this] { unblock(); };
  handlers.on_disconnected = [this] { blocked_ = false; };
  handlers.on_refused = [](const Error&) {};  // the control port, refused alike, has it in the log
  MONARCH_ASSIGN(client_, ReconnectingClient::start(*context_, zmq_loop_, options_.bulk, keys_, options_.seed,
                                                    std::move(handlers)));
  writer_.emplace(loop_, LogWriter::Options{.log_directory = options_.log_directory, .copied = options_.copied}, *this,
                  LogWriter::Handlers{[this](const OutputTold& told, const OutputTotals& totals) {
                    return to_main_.put(LogProgress{told, totals});
                  }});
  return {};
}

void Logging::run() {
  if (const Status opened = open(); !opened.ok()) {
    // Nobody would take the ranks' output, and they would stand still; the keeper starts another daemon.
    log_error("logging: ", opened.error().message);
    std::abort();
  }
  zmq_loop_.run();
  writer_.reset();
}

bool Logging::offer(const Incarnation& incarnation, Output&& output) { return say(output, incarnation); }

bool Logging::offer_unkept(const Incarnation& incarnation, Output&& output) {
  return say(OutputUnkept{std::move(output)}, incarnation);
}

bool Logging::gone(const Incarnation& incarnation, const OutputGone& gone) { return say(gone, incarnation); }

// The one thing that a supervisor says here. What is not that is passed over: it asks again for what it misses.
void Logging::hear(const std::vector<ZmqFrame>& frames) {
  if (frames.size() != 2) return;
  const auto header = decode_header(frames[0].bytes());
  if (!header.ok() || header->job != options_.job) return;
  (void)route(*header, frames[1].bytes(),
              when<OutputFrom>([&](const OutputFrom& from) { writer_->say_again(header->process, from); }));
}

bool Logging::say(std::uint16_t type, const Incarnation& incarnation, std::string payload) {
  const FrameHeader header{.type = type, .job = options_.job, .process = incarnation, .seq = ++sent_frames_};
  trim_later();
  std::vector<ZmqFrame> frames = link_message(header, std::move(payload));
  const Status sent = client_->send(frames);
  if (sent.ok()) return true;
  if (sent.error().code == ErrorCode::kBusy) {
    blocked_ = true;
    client_->when_writable([this] { unblock(); });
  }
  return false;
}

void Logging::unblock() {
  blocked_ = false;
  flush_stacks();
  if (writer_) writer_->sink_ready();
}

// A flood leaves the heap as large as the link's queue was. What is free is given back while it lasts, and once after.
void Logging::trim_later() {
  if (std::exchange(trim_armed_, true)) return;
  loop_.at(loop_.now() + kTrimPeriod, [this, frames = sent_frames_] {
    (void)::malloc_trim(0);  // it answers whether there was anything to give back
    trim_armed_ = false;
    if (sent_frames_ != frames) trim_later();
  });
}

void Logging::take_orders() {
  for (ToLog& order : orders_.take_all()) {
    std::visit([this](auto& each) { on(std::move(each)); }, order);
  }
}

void Logging::on(LogSource&& source) {
  const Incarnation incarnation = source.incarnation;
  const bool was_standby = source.standby.has_value();
  if (const Status added = writer_->add(std::move(source)); !added.ok()) {
    log_error("output of rank ", incarnation.rank.rank.value(), " is not taken: ", added.error().message);
  }
  if (was_standby) answer(PipesTaken{incarnation});
}

void Logging::on(MakePromise&& order) {
  answer(PromiseMade{order.term, write_promise(options_.state_directory, order.term)});
}

void Logging::on(RemoveState&& /*order*/) {
  remove_promise(options_.state_directory);
  answer(StateRemoved{});
}

void Logging::on(SayStacks&& order) {
  if (stacks_.size() == kWaitingStacks) stacks_.pop_front();
  stacks_.push_back(std::move(order));
  flush_stacks();
}

// Before more output: somebody waits for them.
void Logging::flush_stacks() {
  while (!stacks_.empty() && wanted()) {
    if (!say(number_of<Stacks>(), stacks_.front().incarnation, stacks_.front().payload)) return;
    stacks_.pop_front();
  }
}

void Logging::answer(FromLog value) {
  answers_.push_back(std::move(value));
  if (answers_.size() == 1) flush_answers();
}

void Logging::flush_answers() {
  while (!answers_.empty()) {
    if (!to_main_.put(answers_.front())) {
      loop_.at(loop_.now() + kTellAgain, [this] { flush_answers(); });
      return;
    }
    answers_.pop_front();
  }
}

}  // namespace

Result<std::unique_ptr<LogThread>> start_log_thread(const LogOptions& options, const CurveKeyPair& keys,
                                                    Inbox<FromLog>& to_main) {
  return LogThread::start(kLogOrders, [options, &keys, &to_main](EventLoop& loop, Inbox<ToLog>& orders) {
    return Logging(loop, options, keys, to_main, orders);
  });
}

}  // namespace monarch::daemon
