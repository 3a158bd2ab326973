// WorkerLinks, what goes out: commands, STARTs each in its turn.

#include <algorithm>
#include <utility>

#include "supervisor/workers/worker_links.h"
#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"
#include "transport/zmq/link_message.h"

namespace monarch {

namespace {

constexpr Duration kLookWhoStartedEvery =
    Duration::milliseconds(20);  // for hosts that are late to tell of what was started

}  // namespace

// What is said again is commands alone.
void WorkerLinks::perform(const Action& action) {
  std::visit(
      [this](const auto& command) {
        if constexpr (requires { command.message; }) {
          (void)this->send(command.host, command.message);
        } else {
          MONARCH_ASSERT(false);
        }
      },
      action);
}

// START grants nothing, so that it is late does no harm; and an order to stop that overtakes it is remembered there.
bool WorkerLinks::send(HostId host, const Start& start) {
  std::deque<Start>& waiting = peers_[host.value()].to_start;
  const bool again = std::any_of(waiting.begin(), waiting.end(), [&](const Start& one) {
    return one.mesh == start.mesh && one.gang == start.gang && one.generation == start.generation;
  });
  if (!again) waiting.push_back(start);
  starts_.want(host);
  start_some();
  return true;
}

void WorkerLinks::start_some() {
  loop_.cancel(std::exchange(start_timer_, 0));
  while (const auto host = starts_.next(loop_.now())) {
    if (!start_now(*host)) starts_.forget(*host);
  }
  if (!starts_.is_idle()) start_timer_ = loop_.at(loop_.now() + kLookWhoStartedEvery, [this] { start_some(); });
}

bool WorkerLinks::start_now(HostId host) {
  Peer& peer = peers_[host.value()];
  const std::deque<Start> starts = std::exchange(peer.to_start, {});
  bool sent = false;
  for (const Start& start : starts) {
    if (handlers_.on_start && !handlers_.on_start(host, start)) continue;  // the next beat shows what is missing
    sent = send(host, number_of<Start>(), encode_payload(start)) || sent;
    peer.starting = {start.mesh, start.generation};
  }
  return sent;
}

void WorkerLinks::note_started(HostId host, const Beat& beat) {
  Peer& peer = peers_[host.value()];
  if (!peer.starting) return;
  const auto started = *peer.starting;
  const bool seen = std::any_of(beat.content.ranks.begin(), beat.content.ranks.end(), [&](const RankReport& report) {
    return report.process.rank.mesh == started.first && report.process.generation >= started.second;
  });
  if (!seen) return;
  peer.starting.reset();
  starts_.answered(host);
  start_some();
}

std::size_t WorkerLinks::signal(const std::vector<RankId>& ranks, int number, std::optional<SignalTo> to) {
  std::map<std::pair<HostId, Generation>, std::vector<RankId>> by_host;
  for (const RankId& rank : ranks) {
    const Generation generation = core_.facts().crew_with(rank).generation;
    const HostId host = place_of(core_.facts(), rank);
    if (judge(core_.facts(), host, {.process = {rank, generation}}).granted)
      by_host[{host, generation}].push_back(rank);
  }
  std::size_t reached = 0;
  for (auto& [where, selected] : by_host) {
    const std::size_t count = selected.size();
    const Signal message{.ranks = std::move(selected), .generation = where.second, .number = number, .to = to};
    if (send(where.first, message)) reached += count;
  }
  return reached;
}

bool WorkerLinks::send(HostId host, std::uint16_t type, std::string payload) {
  const std::string user_id = user_id_of(host);
  const std::optional<LinkId> link = table_.link_of(user_id);
  if (!link) return false;
  Peer& peer = peers_[host.value()];
  FrameHeader header;
  header.type = type;
  header.job = core_.state().job;
  header.term = term_;
  header.seq = peer.next_seq++;
  std::vector<ZmqFrame> frames = link_message(header, std::move(payload));
  const Status sent = link_.send(*link, frames);
  if (sent.ok()) return true;
  if (sent.error().code == ErrorCode::kGone) {
    table_.forget(user_id, *link);
    return false;
  }
  log_warn(core_.hosts()[host.value()].name, ": a message of type ", header.type,
           " was not sent: ", sent.error().message);
  return false;
}

}  // namespace monarch
