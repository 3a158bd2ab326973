#include "supervisor/client/link/supervisor_client.h"

#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_message.h"

namespace monarch {

namespace {

constexpr int kPiecesPerTurn = 16;  // then the loop's other handlers have their turn

// The answer as a T, or the refusal as an error.
template <class T>
Result<T> answer_as(Result<Frame> answer) {
  if (!answer.ok()) return std::move(answer).error();
  Result<T> told =
      Error{ErrorCode::kInternal, text("the supervisor answered with a message of type ", answer->header.type)};
  const Status read = route(answer->header, answer->payload,
                            when<T>([&](T&& message) { told = std::move(message); }, limits::kSeqpacketPayloadBytes),
                            when<Refused>([&](const Refused& refused) {
                              told = Error{ErrorCode::kInvalid, refused.message};
                            }));
  if (!read.ok() && is_a<T>(answer->header)) return read.error();
  return told;
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

Status SupervisorClient::attach(const std::string& viewer, std::uint64_t after_event) {
  return channel_->send(
      frame_of(Attach{.output = false, .events = true, .after_event = after_event, .viewer = viewer}));
}

template <class Request>
void SupervisorClient::request(const Request& request, std::function<void(Result<AnswerTo<Request>>)> answer_with) {
  const std::uint64_t call = next_call_++;
  const TimerId deadline = loop_.at(boot_now() + kAnswerDeadline, [this, call] {
    answer(call, Error{ErrorCode::kTimeout, text("the supervisor did not answer within ", to_text(kAnswerDeadline))});
  });
  const auto take = [answer_with = std::move(answer_with)](Result<Frame> frame) {
    answer_with(answer_as<AnswerTo<Request>>(std::move(frame)));
  };
  pending_.emplace(call, Pending{.answer = take, .deadline = deadline});
  if (auto sent = channel_->send(frame_of(request, {.call = call})); !sent.ok()) {
    loop_.defer(scope_.guard([this, call, error = sent.error()] { answer(call, error); }));
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

void SupervisorClient::on_frame(Frame frame) {
  const Status told = route(frame.header, frame.payload, when<JobEvent>([&](JobEvent&& event) {
                              if (handlers_.on_event) handlers_.on_event(std::move(event));
                            }),
                            when<Verdict>([&](Verdict&& verdict) {
                              if (handlers_.on_verdict) handlers_.on_verdict(std::move(verdict));
                            }));
  // What is told cannot be read: it is passed over. All else is an answer.
  if (told.ok() || told.error().code != ErrorCode::kUnsupported) return;
  const std::uint64_t call = frame.header.call;
  answer(call, std::move(frame));
}

void SupervisorClient::on_closed(Error why) {
  const Scope::Watch here = scope_.watch();
  while (!here.gone() && !pending_.empty()) answer(pending_.begin()->first, why);
  if (!here.gone() && handlers_.on_closed) handlers_.on_closed(std::move(why));
}

template <class Request>
Result<AnswerTo<Request>> ask(const ViewerAddress& address, const Request& request, Duration deadline) {
  using Answer = AnswerTo<Request>;
  MONARCH_ASSIGN(auto loop, EventLoop::create());
  std::optional<Result<Answer>> answer;
  const auto done = [&](Result<Answer> with) {
    if (!answer) answer.emplace(std::move(with));
    loop->stop();
  };
  MONARCH_ASSIGN(auto client,
                 SupervisorClient::connect(*loop, address, {.on_closed = [&](Error why) { done(std::move(why)); }}));
  loop->at(boot_now() + deadline, [&] {
    done(Error{ErrorCode::kTimeout, text("the supervisor did not answer within ", to_text(deadline))});
  });
  client->request(request, done);
  loop->run();
  return std::move(*answer);
}

template void SupervisorClient::request(const StatusRequest&, std::function<void(Result<JobStatus>)>);
template void SupervisorClient::request(const DoorRequest&, std::function<void(Result<JobStatus>)>);
template void SupervisorClient::request(const StopRequest&, std::function<void(Result<Accepted>)>);
template void SupervisorClient::request(const SignalRequest&, std::function<void(Result<Accepted>)>);
template void SupervisorClient::request(const InputRequest&, std::function<void(Result<Accepted>)>);
template void SupervisorClient::request(const DrillNotice&, std::function<void(Result<Accepted>)>);
template Result<JobStatus> ask(const ViewerAddress&, const StatusRequest&, Duration);
template Result<Accepted> ask(const ViewerAddress&, const StopRequest&, Duration);
template Result<Accepted> ask(const ViewerAddress&, const SignalRequest&, Duration);
template Result<Accepted> ask(const ViewerAddress&, const OperatorRequest&, Duration);
template Result<Accepted> ask(const ViewerAddress&, const HoldRequest&, Duration);
template Result<Accepted> ask(const ViewerAddress&, const DrillNotice&, Duration);

Result<std::unique_ptr<OutputConnection>> OutputConnection::connect(EventLoop& loop, const ViewerAddress& address,
                                                                    const std::string& viewer, Handlers handlers) {
  MONARCH_ASSIGN(ViewerSocket connected, connect_viewer(address));
  const Attach attach{.output = true, .events = false, .after_event = 0, .viewer = viewer};
  MONARCH_ASSIGN(const OutgoingMessage message, pack_message(frame_of(attach), {}, limits::kSeqpacketInlineBytes));
  // The first message of a connection fits its buffer.
  if (send_message(connected.socket.get(), message) != SendOutcome::kSent) {
    return Error{ErrorCode::kGone, text("the supervisor at ", address.socket, " took no request for output")};
  }
  std::unique_ptr<OutputConnection> connection(new OutputConnection(loop, std::move(connected), std::move(handlers)));
  MONARCH_TRY(connection->watch());
  return connection;
}

OutputConnection::~OutputConnection() { pause(); }

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
  const Scope::Watch here = scope_.watch();
  for (int taken = 0; taken < kPiecesPerTurn && watch_ != 0; ++taken) {
    auto message = receive_message(socket_.get(), limits::kSeqpacketPayloadBytes);
    if (!message.ok()) return close(message.error());
    if (!message->has_value()) return;
    const Frame& frame = (*message)->frame;
    const auto piece = [&](Output&& output, bool kept) {
      handlers_.on_piece({.kept = kept, .process = frame.header.process, .output = std::move(output)});
    };
    const Status read = route(frame.header, frame.payload,
                              when<ViewerOutput>([&](ViewerOutput&& output) { piece(std::move(output), true); },
                                                 limits::kSeqpacketPayloadBytes),
                              when<ViewerUnkept>([&](ViewerUnkept&& lost) { piece(std::move(lost), false); },
                                                 limits::kSeqpacketPayloadBytes));
    // Nothing else is for this connection.
    if (!read.ok() && read.error().code != ErrorCode::kUnsupported) return close(read.error());
    if (here.gone()) return;
  }
}

void OutputConnection::close(Error why) {
  pause();
  socket_.reset();
  const auto on_closed = std::move(handlers_.on_closed);
  if (on_closed) on_closed(std::move(why));
}

}  // namespace monarch
