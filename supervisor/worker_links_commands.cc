// WorkerLinks, what goes out: commands, and commands that a beat shows to be lost.

#include <utility>

#include "supervisor/worker_links.h"
#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

// At most once a heartbeat: what was sent since the last beat may still be on its way.
void WorkerLinks::resend_lost(HostId host, const Beat& beat) {
  Peer& peer = peers_[host.value()];
  if (loop_.now() - peer.resent_at < core_.spec().supervision.heartbeat) return;
  peer.resent_at = loop_.now();
  // What is not durable yet was never said, so nothing of it was lost; said here, it would overtake its record (J1).
  if (!handlers_.all_durable()) return;
  for (const Action& action : core_.outstanding(host, beat.content.ranks)) perform(action);
}

void WorkerLinks::perform(const Action& action) {
  if (const auto* reserve = std::get_if<SendReserve>(&action)) return send(*reserve);
  if (const auto* start = std::get_if<SendStart>(&action)) return send(*start);
  if (const auto* stop = std::get_if<SendStop>(&action)) return send(*stop);
  if (const auto* shutdown = std::get_if<SendShutdown>(&action)) return send(*shutdown);
  MONARCH_ASSERT(false);  // outstanding() answers with commands alone
}

void WorkerLinks::send(const SendReserve& action) {
  (void)send(action.host, MessageType::kReserve, encode_payload(action.message));
}
void WorkerLinks::send(const SendStart& action) {
  if (handlers_.on_start && !handlers_.on_start(action)) return;
  (void)send(action.host, MessageType::kStart, encode_payload(action.message));
}
void WorkerLinks::send(const SendStop& action) {
  (void)send(action.host, MessageType::kStop, encode_payload(action.message));
}
void WorkerLinks::send(const SendTell& action) {
  send(action.host, MessageType::kTell, encode_payload(action.message));
}
void WorkerLinks::send(const SendSignal& action) {
  (void)send(action.host, MessageType::kSignal, encode_payload(action.message));
}
void WorkerLinks::answer(HostId host, const CommitAnswer& answer) {
  (void)send(host, MessageType::kCommitAnswer, encode_payload(answer));  // lost: the next beat asks again
}

bool WorkerLinks::send_vault_table(HostId host, const VaultTable& table) {
  return send(host, MessageType::kVaultTable, encode_payload(table));
}

void WorkerLinks::send(const SendShutdown& action) {
  (void)send(action.host, MessageType::kShutdown, encode_payload(action.message));
}

std::size_t WorkerLinks::signal(const std::vector<RankId>& ranks, int number, std::optional<SignalTo> to) {
  std::map<std::pair<HostId, Generation>, std::vector<RankId>> by_host;
  for (const RankId& rank : ranks) {
    const GangId gang = core_.spec().meshes[rank.mesh.value()].gang_of(rank.rank);
    const Generation generation = core_.state().meshes[rank.mesh.value()].gangs[gang.value()].generation;
    if (core_.grants({rank, generation})) by_host[{core_.placement().host_of(rank), generation}].push_back(rank);
  }
  std::size_t reached = 0;
  for (auto& [where, selected] : by_host) {
    const std::size_t count = selected.size();
    const Signal message{.ranks = std::move(selected), .generation = where.second, .number = number, .to = to};
    if (send(where.first, MessageType::kSignal, encode_payload(message))) reached += count;
  }
  return reached;
}

// What cannot be sent is not kept: the next beat shows what is missing, and outstanding() says it again.
bool WorkerLinks::send(HostId host, MessageType type, std::string payload) {
  const std::string user_id = user_id_of(host);
  const std::optional<LinkId> link = table_.link_of(user_id);
  if (!link) return false;
  Peer& peer = peers_[host.value()];
  FrameHeader header;
  header.type = static_cast<std::uint16_t>(type);
  header.job = core_.state().job;
  header.term = term_;
  header.seq = peer.next_seq++;
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::copy(encode_header(header)));
  frames.push_back(ZmqFrame::take(std::move(payload)));
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
