// VaultCore: what ranks ask, and what the supervisor's table changes.

#include "worker/core/vault/vault_core.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

VaultActions VaultCore::step(const VaultEvent& event, Instant now) {
  now_ = now;
  std::visit([this](const auto& one) { on(one); }, event);
  activate_fetches();
  return std::exchange(out_, {});
}

Instant VaultCore::next_due() const {
  Instant due = Instant::never();
  for (const auto& [item, fetch] : fetches_) {
    if (!fetch.active) continue;
    due = std::min(due, fetch.heard + kFetchQuiet);
    for (const auto& [offset, asked] : fetch.on_the_way) due = std::min(due, asked.at + kAskAgain);
  }
  for (const auto& [item, copying] : copying_) {
    for (const auto& [host, target] : copying.waiting) {
      due = std::min({due, target.offered + kAskAgain, target.heard + kAnswerQuiet});
    }
  }
  for (const auto& [item, search] : searches_) {
    if (search.asked && !fetches_.contains(item)) due = std::min(due, search.asked_at + kFetchQuiet);
  }
  for (const Waiting& asked : waiting_) {
    if (asked.full_since) due = std::min(due, *asked.full_since + kFullPatience);
  }
  return due;
}

void VaultCore::on(const vault_event::Asked& event) {
  Waiting asked{event.client, event.question, event.bytes, {}};
  if (take(asked)) return;
  if (waiting_.size() >= kQuestions) {
    return answer(event.client,
                  vault_error(text("more than ", kQuestions, " questions wait at the vault of ", options_.host_name)));
  }
  waiting_.push_back(asked);
}

// Nobody commits what was not answered, so it is given up. A search goes on: another start of the rank will want what
// it finds.
void VaultCore::on(const vault_event::ClientLeft& event) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.client == event.client; });
  const auto copying = std::find_if(copying_.begin(), copying_.end(),
                                    [&](const auto& one) { return one.second.client == event.client; });
  if (copying != copying_.end()) {
    const VaultItem item = copying->first;
    const bool is_new = copying->second.is_new;
    copying_.erase(copying);
    if (is_new) drop_blob(item);
  }
  for (auto& [item, search] : searches_) std::erase(search.clients, event.client);
  std::erase_if(searches_,
                [&](const auto& one) { return one.second.clients.empty() && !fetches_.contains(one.first); });
}

void VaultCore::on(const vault_event::TableCame& event) {
  const bool others = event.table.peers != table_.peers;
  table_ = event.table;
  know_gangs();
  if (others) out_.emplace_back(vault_action::PeersChanged{});
  give_up_old();
  std::vector<std::pair<VaultItem, HostId>> left;
  for (const auto& [item, copying] : copying_) {
    for (const auto& [host, target] : copying.waiting) {
      if (peer(host) == nullptr) left.emplace_back(item, host);
    }
  }
  for (const auto& [item, host] : left) without(item, host, "is not connected any more");
  if (others) reach_again();
  take_early_offers();
  take_waiting();
}

// Who sends for a generation is not always told of to all at once: whoever was named once stays one of them until the
// next one.
void VaultCore::know_gangs() {
  VaultGangs gangs;
  for (const VaultGang& gang : table_.gangs) {
    VaultGang& now = gangs[{gang.mesh, gang.gang}] = gang;
    const auto before = gangs_.find({gang.mesh, gang.gang});
    if (before == gangs_.end() || before->second.generation != gang.generation) continue;
    for (const VaultSource& source : before->second.sources) {
      if (std::find(now.sources.begin(), now.sources.end(), source) == now.sources.end()) now.sources.push_back(source);
    }
  }
  gangs_ = std::move(gangs);
}

void VaultCore::take_waiting() {
  for (Waiting& asked : std::exchange(waiting_, {})) {
    if (!take(asked)) waiting_.push_back(std::move(asked));
  }
}

bool VaultCore::take(Waiting& asked) {
  if (table_.version == 0) return false;
  const std::optional<MeshId> mesh = mesh_named(asked.question.mesh);
  if (!mesh) {
    answer(asked.client, vault_error(text("there is no mesh ", asked.question.mesh)));
    return true;
  }
  return asked.question.kind == VaultAsks::kSave ? save(asked, *mesh) : load(asked, *mesh);
}

bool VaultCore::save(Waiting& asked, MeshId mesh) {
  const RankId rank{mesh, asked.question.rank};
  const VaultKey key{rank, asked.question.generation, asked.question.step};
  const VaultItem item{key, asked.question.digest};
  const auto found = gangs_.find({mesh, *gang_of(rank)});
  if (found == gangs_.end()) {
    answer(asked.client, vault_error(text("nothing is kept of ", rank_name(rank),
                                          ": its gang is done, or its mesh is a sidecar or has no such rank")));
    return true;
  }
  const VaultGang& gang = found->second;
  if (gang.generation < key.generation) {
    asked.full_since.reset();
    return false;
  }
  if (gang.generation > key.generation) {
    answer(asked.client, vault_denied("refused", text("generation ", gang.generation,
                                                      " of its gang has taken the place of ", key.generation)));
    return true;
  }
  if (const auto busy = copying_.find(item); busy != copying_.end()) {
    answer(busy->second.client, vault_error(text("step ", key.step, " was saved again meanwhile")));
    copying_.erase(busy);
  }
  // What is here whole may be what was committed: it stays, and what was handed over goes.
  const bool is_new = !has_whole(item);
  if (is_new) {
    drop_blob(item);
    if (const std::string why = no_room_for(key, asked.bytes); !why.empty()) {
      if (waits_for_room(asked)) return false;
      if (!give_way(std::nullopt, asked.bytes)) {
        answer(asked.client, vault_denied("full", why));
        return true;
      }
    }
    Blob& blob = add_blob(item, asked.bytes);
    blob.complete = true;
    out_.emplace_back(vault_action::Adopt{asked.client, blob.id, asked.bytes});
  }
  copying_[item] = {.client = asked.client, .bytes = blobs_.at(item).bytes, .is_new = is_new};
  begin_copies(item, gang);
  return true;
}

// A step may have been committed of which the table does not know yet.
bool VaultCore::waits_for_room(Waiting& asked) const {
  if (asked.bytes > options_.memory) return false;
  if (!asked.full_since) asked.full_since = now_;
  return now_ < *asked.full_since + kFullPatience;
}

void VaultCore::begin_copies(const VaultItem& item, const VaultGang& gang) {
  Copying& copying = copying_.at(item);
  if (gang.targets.empty()) copying.without.emplace_back("no other host is connected that holds no rank of the gang");
  for (const HostId target : gang.targets) {
    if (peer(target) == nullptr) {
      copying.without.push_back(text(name_of(target), " is not connected"));
    } else if (const auto silent = silent_.find(target); silent != silent_.end()) {
      copying.without.push_back(text(name_of(target), " has not answered since step ", silent->second.key.step));
      probes_[target] = item;
      out_.emplace_back(vault_action::Dial{target});
    } else {
      copying.waiting[target] = {.offered = now_, .heard = now_};
      out_.emplace_back(vault_action::Dial{target});
    }
  }
  settle(item);
}

// Answers the rank once nobody is waited for any more.
void VaultCore::settle(const VaultItem& item) {
  const auto found = copying_.find(item);
  if (found == copying_.end() || !found->second.waiting.empty()) return;
  const Copying copying = std::move(found->second);
  copying_.erase(found);
  const std::string why = join(copying.without, "; ");
  if (copying.kept.empty() && copying.no_room) {
    if (copying.is_new) drop_blob(item);
    return answer(copying.client, vault_denied("full", why));
  }
  std::vector<HostId> hosts = copying.kept;
  hosts.insert(hosts.begin(), options_.host);
  answer(copying.client, vault_saved(hosts, why));
}

bool VaultCore::load(const Waiting& asked, MeshId mesh) {
  const VaultQuestion& question = asked.question;
  const VaultItem item{{{mesh, question.rank}, question.generation, question.step}, question.digest};
  const auto bad = [&](HostId host) {
    return std::find(question.not_from.begin(), question.not_from.end(), host) != question.not_from.end();
  };
  if (has_whole(item)) {
    if (!bad(options_.host)) {
      const Blob& blob = blobs_.at(item);
      answer(asked.client, vault_found(options_.host, blob.bytes), blob.id);
      return true;
    }
    drop_blob(item);
  }
  if (const auto search = searches_.find(item); search != searches_.end()) {
    search->second.clients.push_back(asked.client);
    return true;
  }
  Search search{.clients = {asked.client}};
  for (const HostId host : question.hosts) {
    search.named.insert(host);
    if (host == options_.host) {
      search.without.push_back(text(options_.host_name, " does not have it any more"));
    } else if (bad(host)) {
      search.without.push_back(text("what ", name_of(host), " has is damaged"));
    } else if (peer(host) == nullptr) {
      search.without.push_back(text(name_of(host), " is not connected"));
    } else {
      search.left.push_back(host);
    }
  }
  std::size_t others = 0;
  for (const PeerAddress& other : table_.peers) {
    if (search.named.contains(other.host) || bad(other.host)) continue;
    if (++others > kOthersAsked) break;
    search.left.push_back(other.host);
  }
  searches_[item] = std::move(search);
  search_next(item);
  return true;
}

void VaultCore::give_up_old(VaultRoom room) {
  std::vector<HeldCheckpoint> held;
  for (const auto& [item, blob] : blobs_) held.push_back({item.key, blob.gang, blob.complete});
  const std::vector<VaultKey> old = to_give_up(held, gangs_, room);
  std::vector<VaultItem> items;
  for (const auto& [item, blob] : blobs_) {
    if (std::binary_search(old.begin(), old.end(), item.key) && !searches_.contains(item)) items.push_back(item);
  }
  for (const VaultItem& item : items) {
    if (const auto copying = copying_.find(item); copying != copying_.end()) {
      answer(copying->second.client,
             vault_denied("refused", text("its gang has gone on without step ", item.key.step)));
      copying_.erase(copying);
    }
    drop_blob(item);
  }
}

void VaultCore::answer(VaultClient client, std::string json, std::optional<BlobId> blob) {
  out_.emplace_back(vault_action::Answer{client, std::move(json), blob});
}

VaultCore::Blob& VaultCore::add_blob(const VaultItem& item, std::uint64_t bytes, std::optional<HostId> sender) {
  Blob& blob = blobs_[item];
  blob = {.id = BlobId(next_blob_++), .bytes = bytes, .gang = *gang_of(item.key.rank), .sender = sender};
  used_ += bytes;
  return blob;
}

void VaultCore::drop_blob(const VaultItem& item) {
  const auto found = blobs_.find(item);
  if (found == blobs_.end()) return;
  used_ -= found->second.bytes;
  out_.emplace_back(vault_action::Drop{found->second.id});
  blobs_.erase(found);
  if (fetches_.erase(item) > 0) std::erase(fetch_order_, item);
}

bool VaultCore::has_whole(const VaultItem& item) const {
  const auto found = blobs_.find(item);
  return found != blobs_.end() && found->second.complete;
}

std::string VaultCore::no_room_for(const VaultKey& key, std::uint64_t bytes) {
  if (fits(bytes)) return {};
  give_up_old();
  if (fits(bytes)) return {};
  give_up_old(VaultRoom::kNone);
  if (fits(bytes)) return {};
  return text("checkpoints.memory of host ", options_.host_name, " is ", amount_text(options_.memory), ": ",
              amount_text(used_), " are taken, and ", rank_name(key.rank), " has ", amount_text(bytes), " of step ",
              key.step);
}

std::optional<MeshId> VaultCore::mesh_named(const std::string& name) const {
  for (std::size_t i = 0; i < table_.meshes.size(); ++i) {
    if (table_.meshes[i].name == name) return MeshId(static_cast<std::uint32_t>(i));
  }
  return std::nullopt;
}

std::optional<GangId> VaultCore::gang_of(const RankId& rank) const {
  if (rank.mesh.value() >= table_.meshes.size()) return std::nullopt;
  return GangId(rank.rank.value() / std::max<std::uint32_t>(1, table_.meshes[rank.mesh.value()].gang_size));
}

const PeerAddress* VaultCore::peer(HostId host) const {
  const auto found = std::find_if(table_.peers.begin(), table_.peers.end(),
                                  [host](const PeerAddress& one) { return one.host == host; });
  return found == table_.peers.end() ? nullptr : &*found;
}

std::string VaultCore::name_of(HostId host) const {
  const PeerAddress* const known = peer(host);
  return known != nullptr ? known->name : text("host ", host.value());
}

std::string VaultCore::rank_name(const RankId& rank) const {
  const bool known = rank.mesh.value() < table_.meshes.size();
  return text(known ? table_.meshes[rank.mesh.value()].name : text(rank.mesh.value()), '/', rank.rank.value());
}

}  // namespace monarch
