#include "supervisor/client/supervisor_client.h"

#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/viewer_messages.h"

namespace monarch {

namespace {

constexpr int kPiecesPerTurn = 16;  // then the loop's other handlers have their turn

Frame frame_of(MessageType type, std::uint64_t call, std::string payload) {
  Frame frame;
  frame.header.type = static_cast<std::uint16_t>(type);
  frame.header.call = call;
  frame.payload = std::move(payload);
  return frame;
}

bool is(const Frame& frame, MessageType type) { return frame.header.type == static_cast<std::uint16_t>(type); }

// The answer as a T, or the refusal as an error.
template <class T>
Result<T> answer_as(Result<Frame> answer, MessageType type) {
  if (!answer.ok()) return std::move(answer).error();
  if (is(*answer, type)) return decode_payload<T>(answer->payload, limits::kSeqpacketPayloadBytes);
  auto refused = decode_payload<Refused>(answer->payload);
  if (!is(*answer, MessageType::kRefused) || !refused.ok()) {
    return Error{ErrorCode::kInternal, text("the supervisor answered with a message of type ", answer->header.type)};
  }
  return Error{ErrorCode::kInvalid, refused->message};
}

}  // namespace

Result<std::unique_ptr<SupervisorClient>> SupervisorClient::connect(EventLoop& loop, const ViewerAddress& address,
                                                                    ClientHandlers handlers) {
  MONARCH_ASSIGN(ViewerSocket connected, connect_viewer(address));
  std::unique_ptr<SupervisorClient> client(new SupervisorClient(loop, std::move(handlers)));
  SupervisorClient* self = client.get();
  client->far_ = std::move(connected.far);
  MONARCH_ASSIGN(client->channel_,
                 SeqpacketChannel::create(
                     loop, std::move(connected.socket),
                     {.on_frame = [self](Frame frame, std::vector<UniqueFd>) { self->on_frame(std::move(frame)); },
                      .on_closed = [self](Error why) { self->on_closed(std::move(why)); }}));
  return client;
}

SupervisorClient::~SupervisorClient() {
  for (const auto& [call, pending] : pending_) loop_.cancel(pending.deadline);
}

Status SupervisorClient::send(MessageType type, std::uint64_t call, std::string payload) {
  return channel_->send(frame_of(type, call, std::move(payload)));
}

Status SupervisorClient::attach(const std::string& viewer, std::uint64_t after_event) {
  return send(MessageType::kAttach, 0,
              encode_payload(Attach{.output = false, .events = true, .after_event = after_event, .viewer = viewer}));
}

void SupervisorClient::ask(MessageType type, std::string payload, std::function<void(Result<Frame>)> answer_with) {
  const std::uint64_t call = next_call_++;
  const TimerId deadline = loop_.at(boot_now() + kAnswerDeadline, [this, call] {
    answer(call, Error{ErrorCode::kTimeout, text("the supervisor did not answer within ", to_text(kAnswerDeadline))});
  });
  pending_.emplace(call, Pending{.answer = std::move(answer_with), .deadline = deadline});
  if (auto sent = send(type, call, std::move(payload)); !sent.ok()) {
    loop_.defer([this, alive = std::weak_ptr<int>(alive_), call, error = sent.error()] {
      if (!alive.expired()) answer(call, error);
    });
  }
}

void SupervisorClient::answer(std::uint64_t call, Result<Frame> with) {
  const auto found = pending_.find(call);
  if (found == pending_.end()) return;  // it came after its deadline
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  loop_.cancel(pending.deadline);
  pending.answer(std::move(with));
}

void SupervisorClient::request_status(std::function<void(Result<JobStatus>)> answer_with) {
  ask(MessageType::kStatusRequest, encode_payload(StatusRequest{}), [answer_with](Result<Frame> frame) {
    answer_with(answer_as<JobStatus>(std::move(frame), MessageType::kStatus));
  });
}

void SupervisorClient::request_stop(const StopRequest& request, std::function<void(Result<Accepted>)> answer_with) {
  ask(MessageType::kStopRequest, encode_payload(request), [answer_with](Result<Frame> frame) {
    answer_with(answer_as<Accepted>(std::move(frame), MessageType::kAccepted));
  });
}

void SupervisorClient::request_signal(const SignalRequest& request, std::function<void(Result<Accepted>)> answer_with) {
  ask(MessageType::kSignalRequest, encode_payload(request), [answer_with](Result<Frame> frame) {
    answer_with(answer_as<Accepted>(std::move(frame), MessageType::kAccepted));
  });
}

void SupervisorClient::request_operator(const OperatorRequest& request,
                                        std::function<void(Result<Accepted>)> answer_with) {
  ask(MessageType::kOperatorRequest, encode_payload(request), [answer_with](Result<Frame> frame) {
    answer_with(answer_as<Accepted>(std::move(frame), MessageType::kAccepted));
  });
}

void SupervisorClient::request_hold(const HoldRequest& request, std::function<void(Result<Accepted>)> answer_with) {
  ask(MessageType::kHoldRequest, encode_payload(request), [answer_with](Result<Frame> frame) {
    answer_with(answer_as<Accepted>(std::move(frame), MessageType::kAccepted));
  });
}

void SupervisorClient::on_frame(Frame frame) {
  if (is(frame, MessageType::kEvent)) {
    auto event = decode_payload<JobEvent>(frame.payload);
    if (event.ok() && handlers_.on_event) handlers_.on_event(std::move(*event));
    return;
  }
  if (is(frame, MessageType::kVerdict)) {
    auto verdict = decode_payload<Verdict>(frame.payload);
    if (verdict.ok() && handlers_.on_verdict) handlers_.on_verdict(std::move(*verdict));
    return;
  }
  const std::uint64_t call = frame.header.call;
  answer(call, std::move(frame));
}

void SupervisorClient::on_closed(Error why) {
  const std::weak_ptr<int> alive = alive_;
  while (!alive.expired() && !pending_.empty()) answer(pending_.begin()->first, why);
  if (!alive.expired() && handlers_.on_closed) handlers_.on_closed(std::move(why));
}

namespace {

template <class T, class Ask>
Result<T> ask_and_wait(const ViewerAddress& address, Duration deadline, Ask ask) {
  MONARCH_ASSIGN(auto loop, EventLoop::create());
  std::optional<Result<T>> answer;
  const auto done = [&](Result<T> with) {
    if (!answer) answer.emplace(std::move(with));
    loop->stop();
  };
  MONARCH_ASSIGN(auto client,
                 SupervisorClient::connect(*loop, address, {.on_closed = [&](Error why) { done(std::move(why)); }}));
  loop->at(boot_now() + deadline, [&] {
    done(Error{ErrorCode::kTimeout, text("the supervisor did not answer within ", to_text(deadline))});
  });
  ask(*client, done);
  loop->run();
  return std::move(*answer);
}

}  // namespace

Result<JobStatus> ask_status(const ViewerAddress& address, Duration deadline) {
  return ask_and_wait<JobStatus>(address, deadline,
                                 [](SupervisorClient& client, const auto& done) { client.request_status(done); });
}

Result<Accepted> ask_signal(const ViewerAddress& address, const SignalRequest& request, Duration deadline) {
  return ask_and_wait<Accepted>(
      address, deadline, [&](SupervisorClient& client, const auto& done) { client.request_signal(request, done); });
}

Result<Accepted> ask_operator(const ViewerAddress& address, const OperatorRequest& request, Duration deadline) {
  return ask_and_wait<Accepted>(
      address, deadline, [&](SupervisorClient& client, const auto& done) { client.request_operator(request, done); });
}

Result<Accepted> ask_hold(const ViewerAddress& address, const HoldRequest& request, Duration deadline) {
  return ask_and_wait<Accepted>(
      address, deadline, [&](SupervisorClient& client, const auto& done) { client.request_hold(request, done); });
}

Result<Accepted> ask_stop(const ViewerAddress& address, const StopRequest& request, Duration deadline) {
  return ask_and_wait<Accepted>(
      address, deadline, [&](SupervisorClient& client, const auto& done) { client.request_stop(request, done); });
}

Result<std::unique_ptr<OutputConnection>> OutputConnection::connect(EventLoop& loop, const ViewerAddress& address,
                                                                    const std::string& viewer, Handlers handlers) {
  MONARCH_ASSIGN(ViewerSocket connected, connect_viewer(address));
  const Attach attach{.output = true, .events = false, .after_event = 0, .viewer = viewer};
  MONARCH_ASSIGN(const OutgoingMessage message, pack_message(frame_of(MessageType::kAttach, 0, encode_payload(attach)),
                                                             {}, limits::kSeqpacketInlineBytes));
  // The first message of a connection fits its buffer.
  if (send_message(connected.socket.get(), message) != SendOutcome::kSent) {
    return Error{ErrorCode::kGone, text("the supervisor at ", address.socket, " took no request for output")};
  }
  std::unique_ptr<OutputConnection> connection(new OutputConnection(loop, std::move(connected), std::move(handlers)));
  MONARCH_TRY(connection->watch());
  return connection;
}

OutputConnection::~OutputConnection() {
  *alive_ = false;
  pause();
}

Status OutputConnection::watch() {
  auto watch = loop_.watch(socket_.get(), Interest::kRead, [this](Readiness) { receive(); });
  if (!watch.ok()) return watch.error();
  watch_ = *watch;
  return {};
}

void OutputConnection::pause() {
  if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
}

void OutputConnection::resume() {
  if (watch_ != 0 || !socket_.valid()) return;
  if (auto watched = watch(); !watched.ok()) close(watched.error());
}

void OutputConnection::receive() {
  const std::shared_ptr<bool> alive = alive_;
  for (int piece = 0; piece < kPiecesPerTurn && watch_ != 0; ++piece) {
    auto message = receive_message(socket_.get(), limits::kSeqpacketPayloadBytes);
    if (!message.ok()) return close(message.error());
    if (!message->has_value()) return;
    const Frame& frame = (*message)->frame;
    const bool kept = is(frame, MessageType::kViewerOutput);
    if (!kept && !is(frame, MessageType::kViewerUnkept)) continue;  // nothing else is for this connection
    auto output = decode_payload<ViewerOutput>(frame.payload, limits::kSeqpacketPayloadBytes);
    if (!output.ok()) return close(output.error());
    handlers_.on_piece({.kept = kept, .process = frame.header.process, .output = std::move(*output)});
    if (!*alive) return;
  }
}

void OutputConnection::close(Error why) {
  pause();
  socket_.reset();
  const auto on_closed = std::move(handlers_.on_closed);
  if (on_closed) on_closed(std::move(why));
}

}  // namespace monarch
