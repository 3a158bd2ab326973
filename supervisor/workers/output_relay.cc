#include "supervisor/workers/output_relay.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "supervisor/workers/worker_links.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/output.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/from_host.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/zmq/link_message.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

namespace {

constexpr std::size_t kCommands = 4'096;
constexpr std::size_t kOutputViewers = 64;  // one more is closed at once

}  // namespace

class OutputRelay::Worker {
 public:
  Worker(EventLoop& loop, std::unique_ptr<ServerLink> link, Inbox<Command>& commands, OutputRelayOptions options,
         Counters& counters, Findings& findings)
      : loop_(loop),
        zmq_loop_(loop),
        link_(std::move(link)),
        commands_(commands),
        job_(options.job),
        meshes_(options.meshes),
        counters_(counters),
        findings_(findings),
        stacks_(options.stacks) {
    for (const RanksStarted& one : options.started) note(one);
    if (!options.copy) return;
    OutputCopy::Handlers handlers;
    handlers.ask = [this](const Incarnation& process, const OutputFrom& from) { ask(process, from); };
    handlers.on_failure = [this](const std::string& why) {
      const std::lock_guard lock(findings_.mutex);
      findings_.copy_failure = why;
    };
    handlers.on_copied = [to = options.copied](const Incarnation& copied) { (void)to->put(copied); };
    copy_.emplace(std::move(*options.copy), std::move(handlers));
  }

  void run() {
    link_->attach(zmq_loop_, [this](InboundMessage&& message) { pass_on(std::move(message)); });
    while (!loop_.stopped()) {
      zmq_loop_.turn(Instant::never());
      counters_.link.put(link_->counters());
    }
    viewers_.clear();
    link_.reset();
  }

  void take_orders() {
    for (Command& command : commands_.take_all()) {
      if (const auto* written = std::get_if<OutputWritten>(&command)) {
        if (copy_) copy_->on_written(*written, loop_.now());
      } else if (const auto* started = std::get_if<std::vector<RanksStarted>>(&command)) {
        for (const RanksStarted& one : *started) note(one);
      } else {
        add(std::move(std::get<UniqueFd>(command)));
      }
    }
    watch_copy();
  }

 private:
  struct Speaker {
    HostId host;
    std::uint64_t last = 0;  // generation's counter
  };

  // What is missing of the copy is asked for when it is due.
  void watch_copy() {
    if (!copy_) return;
    const Instant due = copy_->next_due();
    if (due >= copy_due_) return;
    loop_.cancel(copy_timer_);
    copy_due_ = due;
    copy_timer_ = loop_.at(due, [this] {
      copy_due_ = Instant::never();
      copy_timer_ = 0;
      copy_->on_time(loop_.now());
      watch_copy();
    });
  }

  void note(const RanksStarted& started) {
    for (const RankId& rank : started.ranks) {
      std::map<std::uint64_t, Speaker>& known = started_[rank];
      known.insert_or_assign(started.first.counter, Speaker{.host = started.host, .last = started.last.counter});
      if (known.size() > kGenerationsKept) known.erase(known.begin());
    }
  }

  // Nothing: nobody has started that, or it is too long ago.
  std::optional<HostId> speaker(const Incarnation& process) const {
    const std::uint64_t counter = process.generation.counter;
    const auto known = started_.find(process.rank);
    if (known == started_.end()) return std::nullopt;
    const auto after = known->second.upper_bound(counter);
    if (after == known->second.begin()) return std::nullopt;
    const Speaker& found = std::prev(after)->second;
    return counter <= found.last ? std::optional(found.host) : std::nullopt;
  }

  // Of the host that the rank runs on, or ran on; one that is not connected is asked again.
  void ask(const Incarnation& process, const OutputFrom& from) {
    const std::optional<HostId> host = speaker(process);
    const auto found = host ? bulk_links_.find(*host) : bulk_links_.end();
    if (found == bulk_links_.end()) return;
    FrameHeader header;
    header.type = number_of<OutputFrom>();
    header.job = job_;
    header.process = process;
    std::vector<ZmqFrame> frames = link_message(header, encode_payload(from));
    (void)link_->send(found->second, frames);  // a link that has gone is asked again when the next one says something
  }

  void add(UniqueFd socket) {
    if (viewers_.size() >= kOutputViewers) {
      log_warn("output: more than ", kOutputViewers, " viewers, one was turned away");
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
    (void)(*viewer)->send(frame_of(Accepted{.message = "output"}, {.job = job_}));  // the queue is empty
  }

  void pass_on(InboundMessage&& message) {
    const auto host = host_of_user_id(message.user_id);
    if (message.frames.size() != 2 || !host) return count(counters_.malformed);
    const auto header = decode_header(message.frames[0].bytes());
    if (!header.ok()) return count(counters_.malformed);
    if (header->job != job_) return count(counters_.foreign_job);
    const bool unkept = is_a<OutputUnkept>(*header);
    const bool known = is_a<Output>(*header) || unkept || (copy_ && is_a<OutputGone>(*header)) ||
                       (stacks_ != nullptr && is_a<Stacks>(*header));
    if (!known) return count(counters_.malformed);
    if (speaker(header->process) != host) {
      take_orders();  // its start may have been told of, and wait behind many pieces
      if (speaker(header->process) != host) return refuse(*host);
    }
    if (is_a<Stacks>(*header)) return pass_stacks_on(*header, message.frames[1].bytes());
    if (unkept) note_unkept(*header, message.frames[1].bytes());
    if (copy_ && !unkept && !keep(*header, *host, message)) return;
    const bool of_spec = header->process.rank.mesh.value() < meshes_;
    if (viewers_.empty() || !of_spec) return;  // viewers show what ranks of the spec write
    // ViewerOutput is Output by another number: the payload goes on as it came.
    Frame frame{*header, std::string(message.frames[1].bytes())};
    frame.header.type = unkept ? number_of<ViewerUnkept>() : number_of<ViewerOutput>();
    for (const auto& viewer : viewers_) {
      if (!viewer->send(frame).ok()) count(counters_.dropped);
    }
  }

  void refuse(HostId host) {
    count(counters_.forged);
    if (!refused_.insert(host).second) return;
    const std::lock_guard lock(findings_.mutex);
    findings_.refused.push_back(host);
  }

  void note_unkept(const FrameHeader& header, std::string_view payload) {
    const auto piece = decode_from_host<Output>(payload, limits::kBulkPayloadBytes);
    if (!piece.ok()) return count(counters_.malformed);
    if (piece->stream != OutputStream::kStderr) return;
    const std::lock_guard lock(findings_.mutex);
    std::list<Unkept>& tails = findings_.tails;
    const auto known =
        std::find_if(tails.begin(), tails.end(), [&](const Unkept& each) { return each.process == header.process; });
    if (known == tails.end()) {
      tails.push_front({.process = header.process, .tail = {}});
      if (tails.size() > kTailsKept) tails.pop_back();
    } else {
      tails.splice(tails.begin(), tails, known);
    }
    UnkeptTail& known_tail = tails.front().tail;
    if (std::exchange(known_tail.at, piece->offset) != piece->offset) known_tail.bytes.clear();
    std::string& tail = known_tail.bytes;
    tail += piece->bytes;
    if (tail.size() > limits::kUnkeptBytes) tail.erase(0, tail.size() - limits::kUnkeptBytes);
  }

  void pass_stacks_on(const FrameHeader& header, std::string_view payload) {
    auto stacks = decode_from_host<Stacks>(payload, limits::kStacksPayloadBytes);
    if (!stacks.ok()) return count(counters_.malformed);
    const bool taken = stacks_->put({.process = header.process, .stacks = std::move(*stacks)});
    if (!taken) count(counters_.dropped);
  }

  // False: it is nothing for viewers.
  bool keep(const FrameHeader& header, HostId host, const InboundMessage& message) {
    bulk_links_[host] = message.link;
    const std::string_view payload = message.frames[1].bytes();
    if (is_a<OutputGone>(header)) {
      const auto gone = decode_from_host<OutputGone>(payload);
      gone.ok() ? copy_->on_gone(header.process, *gone, loop_.now()) : count(counters_.malformed);
      return false;
    }
    const auto piece = decode_from_host<Output>(payload, limits::kBulkPayloadBytes);
    if (!piece.ok()) {
      count(counters_.malformed);
      return false;
    }
    copy_->on_piece(header.process, *piece, loop_.now());
    watch_copy();
    return piece->stream != OutputStream::kErrorFile;
  }

  static void count(std::atomic<std::uint64_t>& number) { number.fetch_add(1, std::memory_order_relaxed); }

  EventLoop& loop_;
  ZmqLoop zmq_loop_;
  std::unique_ptr<ServerLink> link_;
  Inbox<Command>& commands_;
  JobUuid job_;
  const std::size_t meshes_;
  std::set<HostId> refused_;
  std::map<RankId, std::map<std::uint64_t, Speaker>> started_;  // by the counter of the first generation
  Counters& counters_;
  Findings& findings_;
  Inbox<StacksCame>* stacks_;
  std::list<std::unique_ptr<SeqpacketChannel>> viewers_;
  std::optional<OutputCopy> copy_;
  std::map<HostId, LinkId> bulk_links_;  // the newest of each host
  TimerId copy_timer_ = 0;
  Instant copy_due_ = Instant::never();
};

std::vector<RanksStarted> started_before(const std::vector<PastPlace>& places, Generation newest,
                                         const std::vector<RankId>& ranks) {
  std::vector<RanksStarted> started;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::vector<HostId>& hosts = places[i].hosts;
    Generation last = newest;
    if (i + 1 < places.size()) last = {places[i].first.term, places[i + 1].first.counter - 1};
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const auto from = ranks.begin() + static_cast<std::ptrdiff_t>(h * ranks.size() / hosts.size());
      const auto to = ranks.begin() + static_cast<std::ptrdiff_t>((h + 1) * ranks.size() / hosts.size());
      started.push_back({.host = hosts[h], .first = places[i].first, .last = last, .ranks = {from, to}});
    }
  }
  return started;
}

std::vector<RanksStarted> started_before(const JobCore& core) {
  std::vector<RanksStarted> all;
  const auto add = [&all](const std::vector<PastPlace>& places, Generation newest, const std::vector<RankId>& ranks) {
    for (RanksStarted& started : started_before(places, newest, ranks)) all.push_back(std::move(started));
  };
  for (std::uint32_t m = 0; m < core.state().crews.size(); ++m) {
    const MeshId mesh(m);
    for (std::uint32_t g = 0; g < core.crews().count(mesh); ++g) {
      const Crew& crew = core.facts().crew(mesh, GangId(g));
      std::vector<RankId> ranks;
      for (std::uint32_t i = 0; i < crew_size(core.spec(), mesh); ++i) {
        ranks.push_back(crew_rank(core.spec(), {{mesh, GangId(g)}, i}));
      }
      add(crew.places, crew.generation, ranks);
    }
  }
  return all;
}

Result<std::unique_ptr<OutputRelay>> OutputRelay::start(std::unique_ptr<ServerLink> link, OutputRelayOptions options) {
  std::unique_ptr<OutputRelay> relay(new OutputRelay());
  relay->counters_ = std::make_unique<Counters>();
  relay->findings_ = std::make_unique<Findings>();
  auto make = [link = std::move(link), options = std::move(options), counters = relay->counters_.get(),
               findings = relay->findings_.get()](EventLoop& loop, Inbox<Command>& commands) mutable {
    return Worker(loop, std::move(link), commands, std::move(options), *counters, *findings);
  };
  MONARCH_ASSIGN(relay->thread_, LoopThread<Command>::start(kCommands, std::move(make)));
  return relay;
}

UnkeptTail OutputRelay::unkept_tail(RankId rank, std::uint64_t generation) const {
  const std::lock_guard lock(findings_->mutex);
  for (const Unkept& each : findings_->tails) {
    if (each.process.rank == rank && each.process.generation.counter == generation) return each.tail;
  }
  return {};
}

std::string OutputRelay::copy_failure() const {
  const std::lock_guard lock(findings_->mutex);
  return findings_->copy_failure;
}

std::vector<HostId> OutputRelay::newly_refused() {
  const std::lock_guard lock(findings_->mutex);
  return std::exchange(findings_->refused, {});
}

LinkCounters OutputRelay::link_counters() const {
  LinkCounters counters = counters_->link.get();
  counters.malformed += counters_->malformed.load(std::memory_order_relaxed);
  return counters;
}

Status OutputRelay::started(std::vector<RanksStarted> started) {
  if (thread_->put(std::move(started))) return {};
  return Error{ErrorCode::kBusy, "too much output comes at once"};
}

Status OutputRelay::started(HostId host, const Start& start) {
  const Generation generation = start.generation;
  RanksStarted told{.host = host, .first = generation, .last = generation, .ranks = {}};
  for (const RankStart& rank : start.ranks) told.ranks.push_back(rank.rank);
  return started(std::vector{std::move(told)});
}

Status OutputRelay::add_viewer(UniqueFd socket) {
  if (thread_->put(std::move(socket))) return {};
  return Error{ErrorCode::kBusy, "too many viewers connect at once"};
}

}  // namespace monarch
