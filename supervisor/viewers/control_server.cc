#include "supervisor/viewers/control_server.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/launch.h"
#include "transport/messages/stacks.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

// Viewers that attach get at most so many of the latest events; `monarch events` reads all of them from the journal.
constexpr std::size_t kRememberedEvents = 10'000;
// Of them so many wait in a viewer's queue; the next come when it has read these. An event fits a record of the
// journal, so that they are well within the queue's bytes.
constexpr std::size_t kEventsInQueue = 32;
// As long as so many frames wait, answers about stacks stay where they are: one may have hundreds of kilobytes, and
// those of a whole job come at once. A viewer that lets more than this wait does not read.
constexpr std::size_t kAnswersInQueue = 8;
constexpr std::size_t kAnswersBytes = 256U << 20U;
constexpr std::size_t kControlViewers = 256;
constexpr std::size_t kNameBytes = 256;  // of who asks; a longer name is cut to fit a record of the journal

}  // namespace

ControlServer::ControlServer(EventLoop& loop, JobUuid job, ControlHandlers handlers)
    : loop_(loop), job_(job), handlers_(std::move(handlers)) {}

ControlServer::~ControlServer() = default;

Result<std::unique_ptr<ControlServer>> ControlServer::create(EventLoop& loop, std::string path, JobUuid job,
                                                             ControlHandlers handlers) {
  std::unique_ptr<ControlServer> server(new ControlServer(loop, job, std::move(handlers)));
  ControlServer* self = server.get();
  MONARCH_ASSIGN(server->listener_,
                 SeqpacketListener::create(loop, std::move(path), [self](UniqueFd socket, PeerCredentials) {
                   self->accept(std::move(socket));
                 }));
  return server;
}

void ControlServer::accept(UniqueFd socket) {
  if (viewers_.size() >= kControlViewers) {
    log_warn("more than ", kControlViewers, " viewers, one was turned away");
    return;
  }
  viewers_.emplace_back();
  const auto viewer = std::prev(viewers_.end());
  viewer->number = next_viewer_++;
  auto channel = SeqpacketChannel::create(
      loop_, std::move(socket),
      {.on_frame = [this, viewer](Frame frame, std::vector<UniqueFd>) { on_frame(viewer, frame); },
       .on_closed =
           [this, viewer](Error) {
             const std::uint64_t number = viewer->number;
             viewers_.erase(viewer);
             tell_use();
             if (handlers_.left) handlers_.left(number);
           },
       .on_drained =
           [this, viewer] {
             feed_answers(*viewer);
             feed(*viewer);
           }},
      {.payload_bytes = limits::kControlPayloadBytes});
  if (!channel.ok()) {
    log_warn("a viewer: ", channel.error().message);
    viewers_.erase(viewer);
    return;
  }
  viewer->channel = std::move(*channel);
}

template <class Message>
Frame ControlServer::answer_of(const Message& message, std::uint64_t call) const {
  return frame_of(message, {.job = job_, .call = call});
}

template <class Message>
void ControlServer::send(Viewer& viewer, const Message& message, std::uint64_t call) {
  const Status sent = viewer.channel->send(answer_of(message, call));
  if (sent.ok() || sent.error().code != ErrorCode::kBusy) return;
  drop(viewer);
}

// Where it is still there.
ControlServer::Viewers::iterator ControlServer::viewer_of(std::uint64_t number) {
  const auto found =
      std::find_if(viewers_.begin(), viewers_.end(), [number](const Viewer& one) { return one.number == number; });
  return found != viewers_.end() && found->channel && found->channel->open() ? found : viewers_.end();
}

// By the viewer's number: when the answer comes, it may have gone.
ControlHandlers::Answer ControlServer::answer_to(std::uint64_t viewer, std::uint64_t call) {
  return [this, viewer, call](Result<std::string> with) {
    const auto asked = viewer_of(viewer);
    if (asked == viewers_.end()) return;
    if (with.ok()) return send(*asked, Accepted{.message = std::move(*with)}, call);
    send(*asked, Refused{.message = with.error().message}, call);
  };
}

void ControlServer::drop(Viewer& viewer) {
  log_warn("viewer ", printable(viewer.name), " does not read: dropped");
  viewer.channel->close();
  viewer.answers.clear();  // it may take its time to go
  viewer.answers_bytes = 0;
}

void ControlServer::feed(Viewer& viewer) {
  if (!viewer.wants_events) return;
  const std::uint64_t end = first_place_ + events_.size();
  while (viewer.next_place < end && viewer.channel->open()) {
    if (viewer.channel->pending_frames() >= kEventsInQueue) return;  // it goes on when they have left
    const JobEvent& event = events_[viewer.next_place++ - first_place_];
    // What has no number is in no journal: it is told to those who are there when it happens.
    if (event.number > viewer.after_event || viewer.next_place > viewer.attached_at) {
      send(viewer, event);
    }
  }
  if (!verdict_ || viewer.has_verdict || !viewer.channel->open()) return;
  viewer.has_verdict = true;
  send(viewer, *verdict_);
}

void ControlServer::feed_answers(Viewer& viewer) {
  while (!viewer.answers.empty() && viewer.channel->open() && viewer.channel->pending_frames() < kAnswersInQueue) {
    const Frame frame = std::move(viewer.answers.front());
    viewer.answers.pop_front();
    viewer.answers_bytes -= frame.payload.size();
    const Status sent = viewer.channel->send(frame);
    if (!sent.ok() && sent.error().code == ErrorCode::kBusy) return drop(viewer);
  }
}

void ControlServer::on_frame(Viewers::iterator viewer, const Frame& frame) {
  const std::uint64_t call = frame.header.call;
  tell_use();
  const auto answer = [&] { return answer_to(viewer->number, call); };
  const Status taken =
      route(frame.header, frame.payload, when<Attach>([&](const Attach& attach) { on_attach(viewer, attach); }),
            when<LauncherHello>([&](const LauncherHello& hello) { on_launcher(viewer, hello); }),
            when<StatusRequest>([&](const StatusRequest&) { send(*viewer, handlers_.status(), call); }),
            when<StopRequest>([&](StopRequest stop) {
              stop.who.resize(std::min(stop.who.size(), kNameBytes));
              handlers_.stop(stop);
              send(*viewer, Accepted{.message = "stopping"}, call);
            }),
            when<SignalRequest>([&](const SignalRequest& signal) { handlers_.signal(signal, answer()); }),
            when<OperatorRequest>([&](OperatorRequest wish) {
              wish.who.resize(std::min(wish.who.size(), kNameBytes));
              handlers_.operate(wish, answer());
            }),
            when<HoldRequest>([&](HoldRequest hold) -> Status {
              if (!handlers_.hold) return Error{ErrorCode::kUnsupported, "nobody here holds ranks"};
              hold.who.resize(std::min(hold.who.size(), kNameBytes));
              handlers_.hold(hold, answer());
              return {};
            }),
            when<DrillNotice>([&](const DrillNotice& notice) -> Status {
              if (!handlers_.drill) return Error{ErrorCode::kUnsupported, "nobody here is told of drills"};
              handlers_.drill(notice, answer());
              return {};
            }),
            when<InputRequest>([&](InputRequest&& input) -> Status {
              if (!handlers_.input) return Error{ErrorCode::kUnsupported, "nobody here takes input"};
              handlers_.input(viewer->number, std::move(input), answer());
              return {};
            }),
            when<DoorRequest>([&](const DoorRequest&) { on_door(viewer, call); }),
            when<StacksRequest>([&](const StacksRequest& request) { on_stacks(viewer, request, call); }));
  if (taken.ok()) return;
  send(*viewer, Refused{.message = text("a request of type ", frame.header.type, " that this supervisor cannot read")},
       call);
}

void ControlServer::tell_use() const {
  if (!handlers_.on_use) return;
  const auto attached =
      std::count_if(viewers_.begin(), viewers_.end(), [](const Viewer& viewer) { return viewer.wants_events; });
  handlers_.on_use(static_cast<std::size_t>(attached));
}

void ControlServer::on_attach(Viewers::iterator viewer, const Attach& attach) {
  viewer->name = attach.viewer;
  if (attach.output) {
    UniqueFd socket(::fcntl(viewer->channel->descriptor(), F_DUPFD_CLOEXEC, 3));
    if (socket.valid()) {
      handlers_.output_viewer(std::move(socket));
    } else {
      log_warn("a viewer of output: ", errno_error("duplicating its socket", errno).message);
    }
    viewers_.erase(viewer);  // the connection lives on in the duplicate
    return;
  }
  send(*viewer, Accepted{.message = "events"});
  viewer->wants_events = attach.events;
  tell_use();
  viewer->after_event = attach.after_event;
  viewer->next_place = first_place_;
  viewer->attached_at = first_place_ + events_.size();
  viewer->has_verdict = false;
  feed(*viewer);
}

// By its number: when an answer comes, the viewer may have gone.
void ControlServer::on_stacks(Viewers::iterator viewer, const StacksRequest& request, std::uint64_t call) {
  const auto answer = [this, number = viewer->number, call](const RankStacks& stacks) {
    const auto asked = viewer_of(number);
    if (asked == viewers_.end()) return;
    asked->answers.push_back(answer_of(stacks, call));
    asked->answers_bytes += asked->answers.back().payload.size();
    if (asked->answers_bytes > kAnswersBytes) return drop(*asked);
    feed_answers(*asked);
  };
  const Status begun = handlers_.stacks ? handlers_.stacks(request, answer)
                                        : Status(Error{ErrorCode::kUnsupported, "this supervisor shows no stacks"});
  if (!begun.ok()) send(*viewer, Refused{.message = begun.error().message}, call);
}

void ControlServer::on_door(Viewers::iterator viewer, std::uint64_t call) {
  const auto answer = [this, number = viewer->number, call] {
    const auto asked = viewer_of(number);
    if (asked != viewers_.end()) send(*asked, handlers_.status(), call);
  };
  const Status waits = handlers_.door ? handlers_.door(viewer->number, answer)
                                      : Status(Error{ErrorCode::kUnsupported, "nobody here knows of posts"});
  if (!waits.ok()) send(*viewer, Refused{.message = waits.error().message}, call);
}

void ControlServer::on_launcher(Viewers::iterator viewer, const LauncherHello& hello) {
  viewer->name = hello.name;
  UniqueFd socket(::fcntl(viewer->channel->descriptor(), F_DUPFD_CLOEXEC, 3));
  Status taken = socket.valid() ? Status() : Status(errno_error("duplicating its socket", errno));
  if (taken.ok()) {
    taken = handlers_.launcher ? handlers_.launcher(std::move(socket))
                               : Status(Error{ErrorCode::kUnsupported, "this supervisor launches its hosts itself"});
  }
  if (!taken.ok()) {
    log_warn(printable(hello.name), " would launch the hosts: ", taken.error().message);
    return send(*viewer, Refused{.message = taken.error().message});
  }
  viewers_.erase(viewer);  // the connection lives on in the duplicate
}

void ControlServer::remember(JobEvent event) {
  events_.push_back(std::move(event));
  if (events_.size() <= kRememberedEvents) return;
  for (Viewer& viewer : viewers_) {
    // Events must not have holes, so it is let go; it may attach again.
    if (viewer.wants_events && viewer.channel->open() && viewer.next_place == first_place_) drop(viewer);
  }
  events_.pop_front();
  ++first_place_;
}

void ControlServer::publish(const JobEvent& event) {
  remember(event);
  for (Viewer& viewer : viewers_) feed(viewer);
}

void ControlServer::publish(const Verdict& verdict) {
  verdict_ = std::make_unique<Verdict>(verdict);
  for (Viewer& viewer : viewers_) {
    viewer.has_verdict = false;
    feed(viewer);
  }
}

bool ControlServer::flushed() const {
  return std::all_of(viewers_.begin(), viewers_.end(),
                     [](const Viewer& viewer) { return viewer.channel->pending_frames() == 0; });
}

}  // namespace monarch
