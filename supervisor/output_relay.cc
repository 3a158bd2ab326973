#include "supervisor/output_relay.h"

#include <list>
#include <utility>

#include "supervisor/core/placement.h"
#include "supervisor/worker_links.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/viewer_messages.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

namespace {

constexpr std::size_t kCommands = 256;
constexpr std::size_t kViewers = 64;  // one more is closed at once

}  // namespace

class OutputRelay::Worker {
 public:
  Worker(EventLoop& loop, std::unique_ptr<ServerLink> link, Inbox<Command>& commands, JobUuid job, JobSpec spec,
         Counters& counters)
      : loop_(loop),
        zmq_loop_(loop),
        link_(std::move(link)),
        commands_(commands),
        job_(job),
        spec_(std::move(spec)),
        placement_(spec_),
        counters_(counters) {}

  void run() {
    link_->attach(zmq_loop_, [this](InboundMessage&& message) { pass_on(std::move(message)); });
    const auto watch = loop_.watch(commands_.descriptor(), Interest::kRead, [this](Readiness) { take_commands(); });
    MONARCH_ASSERT(watch.ok());
    while (!loop_.stopped()) {
      zmq_loop_.turn(Instant::never());
      counters_.link.put(link_->counters());
    }
    viewers_.clear();
    link_.reset();
  }

 private:
  void take_commands() {
    for (Command& command : commands_.take_all()) {
      if (std::holds_alternative<Stop>(command)) {
        loop_.stop();
        return;
      }
      add(std::move(std::get<UniqueFd>(command)));
    }
  }

  void add(UniqueFd socket) {
    if (viewers_.size() >= kViewers) {
      log_warn("output: more than ", kViewers, " viewers, one was turned away");
      return;
    }
    viewers_.emplace_back();
    const auto viewer = std::prev(viewers_.end());
    auto channel = SeqpacketChannel::create(loop_, std::move(socket),
                                            {.on_frame = [](Frame, std::vector<UniqueFd>) {},
                                             .on_closed = [this, viewer](Error) { viewers_.erase(viewer); }});
    if (!channel.ok()) {
      log_warn("output: a viewer: ", channel.error().message);
      viewers_.erase(viewer);
      return;
    }
    *viewer = std::move(*channel);
    FrameHeader header;
    header.type = static_cast<std::uint16_t>(MessageType::kAccepted);
    header.job = job_;
    (void)(*viewer)->send({header, encode_payload(Accepted{.message = "output"})});  // the queue is empty
  }

  void pass_on(InboundMessage&& message) {
    const auto host = host_of_user_id(message.user_id);
    if (message.frames.size() != 2 || !host) return count(counters_.malformed);
    const auto header = decode_header(message.frames[0].bytes());
    if (!header.ok()) return count(counters_.malformed);
    if (header->job != job_) return count(counters_.foreign_job);
    if (header->type != static_cast<std::uint16_t>(MessageType::kOutput)) return count(counters_.malformed);
    if (!runs_on(header->rank, *host)) return count(counters_.forged);
    if (viewers_.empty()) return;
    // Output and ViewerOutput have the same fields: the payload goes on as it came.
    Frame frame{*header, std::string(message.frames[1].bytes())};
    frame.header.type = static_cast<std::uint16_t>(MessageType::kViewerOutput);
    for (const auto& viewer : viewers_) {
      if (!viewer->send(frame).ok()) count(counters_.dropped);
    }
  }

  static void count(std::atomic<std::uint64_t>& number) { number.fetch_add(1, std::memory_order_relaxed); }

  bool runs_on(RankId rank, HostId host) const {
    return rank.mesh.value() < spec_.meshes.size() && rank.rank.value() < spec_.meshes[rank.mesh.value()].size() &&
           placement_.host_of(rank) == host;
  }

  EventLoop& loop_;
  ZmqLoop zmq_loop_;
  std::unique_ptr<ServerLink> link_;
  Inbox<Command>& commands_;
  JobUuid job_;
  const JobSpec spec_;
  const Placement placement_;
  Counters& counters_;
  std::list<std::unique_ptr<SeqpacketChannel>> viewers_;
};

Result<std::unique_ptr<OutputRelay>> OutputRelay::start(std::unique_ptr<ServerLink> link, JobUuid job, JobSpec spec) {
  std::unique_ptr<OutputRelay> relay(new OutputRelay());
  MONARCH_ASSIGN(relay->commands_, Inbox<Command>::create(kCommands));
  relay->counters_ = std::make_unique<Counters>();
  relay->thread_ = std::thread([link = std::move(link), job, commands = relay->commands_.get(), spec = std::move(spec),
                                counters = relay->counters_.get()]() mutable {
    auto loop = EventLoop::create();
    MONARCH_ASSERT(loop.ok());
    Worker worker(**loop, std::move(link), *commands, job, std::move(spec), *counters);
    worker.run();
  });
  return relay;
}

OutputRelay::~OutputRelay() {
  if (!thread_.joinable()) return;
  // The inbox can be full of viewers only for the moment that the thread needs to take them.
  while (!commands_->put(Stop{})) std::this_thread::yield();
  thread_.join();
}

LinkCounters OutputRelay::link_counters() const {
  LinkCounters counters = counters_->link.get();
  counters.malformed += counters_->malformed.load(std::memory_order_relaxed);
  return counters;
}

Status OutputRelay::add_viewer(UniqueFd socket) {
  if (commands_->put(std::move(socket))) return {};
  return Error{ErrorCode::kBusy, "too many viewers connect at once"};
}

}  // namespace monarch
