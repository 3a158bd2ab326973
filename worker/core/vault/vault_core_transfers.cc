// VaultCore: what it says to other vaults, and what they say.

#include <algorithm>
#include <tuple>

#include "transport/base/text.h"
#include "worker/core/vault/vault_core.h"

namespace monarch {

namespace {

constexpr const char* kNotHere = "does not have it";

}  // namespace

void VaultCore::on(const vault_event::PeerSpoke& event) {
  silent_.erase(event.from);
  probes_.erase(event.from);
  std::visit([&](const auto& message) { on_message(event.from, event.via, message); }, event.message);
}

// What was said over an earlier connection may be lost.
void VaultCore::on(const vault_event::PeerUp& event) {
  for (auto& [item, copying] : copying_) {
    if (copying.waiting.contains(event.host)) offer(item, event.host);
  }
  if (const auto probe = probes_.find(event.host); probe != probes_.end() && has_whole(probe->second)) {
    const VaultItem& item = probe->second;
    out_.emplace_back(
        vault_action::Send{event.host, PeerVia::kOurs, VaultOffer{item.key, blobs_.at(item).bytes, item.digest}});
  }
  for (auto& [item, search] : searches_) {
    if (search.asked != event.host || fetches_.contains(item)) continue;
    out_.emplace_back(vault_action::Send{event.host, PeerVia::kOurs, VaultAsk{item.key, item.digest, 0, 0}});
  }
}

void VaultCore::offer(const VaultItem& item, HostId target) {
  Copying& copying = copying_.at(item);
  copying.waiting.at(target).offered = now_;
  out_.emplace_back(vault_action::Send{target, PeerVia::kOurs, VaultOffer{item.key, copying.bytes, item.digest}});
}

// This target has no copy of it, and will have none.
void VaultCore::without(const VaultItem& item, HostId target, const std::string& why) {
  const auto found = copying_.find(item);
  if (found == copying_.end() || found->second.waiting.erase(target) == 0) return;
  found->second.without.push_back(text(name_of(target), ' ', why));
  settle(item);
}

// Connections to hosts that are others now have ended, and so have fetches from those that are gone.
void VaultCore::reach_again() {
  std::vector<VaultItem> gone;
  for (const auto& [item, fetch] : fetches_) {
    if (peer(fetch.from) == nullptr) gone.push_back(item);
  }
  for (const VaultItem& item : gone) fetch_failed(item, "is not connected any more");
  for (const auto& [item, copying] : copying_) {
    for (const auto& [host, target] : copying.waiting) out_.emplace_back(vault_action::Dial{host});
  }
  std::vector<std::pair<VaultItem, HostId>> asked;
  for (const auto& [item, search] : searches_) {
    if (search.asked && !fetches_.contains(item)) asked.emplace_back(item, *search.asked);
  }
  for (const auto& [item, host] : asked) {
    if (peer(host) == nullptr) {
      search_without(item, host, "is not connected any more");
    } else {
      out_.emplace_back(vault_action::Dial{host});
    }
  }
}

// This one does not help. Of those that the rank did not name it need not hear.
void VaultCore::search_without(const VaultItem& item, HostId host, const std::string& why) {
  Search& search = searches_.at(item);
  if (search.named.contains(host)) search.without.push_back(text(name_of(host), ' ', why));
  search_next(item);
}

// Asks the next of those that have it; when none is left, the ranks hear why.
void VaultCore::search_next(const VaultItem& item) {
  Search& search = searches_.at(item);
  search.asked.reset();
  if (search.left.empty()) {
    const std::string why = search.without.empty() ? "no host is known to have it" : join(search.without, "; ");
    for (const VaultClient client : search.clients) answer(client, vault_denied("missing", why));
    searches_.erase(item);
    return;
  }
  search.asked = search.left.front();
  search.asked_at = now_;
  search.left.pop_front();
  out_.emplace_back(vault_action::Dial{*search.asked});
}

void VaultCore::found(const VaultItem& item) {
  const auto search = searches_.find(item);
  if (search == searches_.end()) return;
  const Blob& blob = blobs_.at(item);
  const HostId from = search->second.asked.value_or(options_.host);
  for (const VaultClient client : search->second.clients) answer(client, vault_found(from, blob.bytes), blob.id);
  searches_.erase(search);
}

// Before a table has spoken of it, it is not known what it is of, whether its generation is the present one, and
// whether it is for us.
void VaultCore::on_message(HostId from, PeerVia via, const VaultOffer& message) {
  const VaultItem item{message.key, message.digest};
  auto& early = early_[from];
  const auto found = early.find(item);
  if (found == early.end() && early.size() >= kEarlyOffers) return;
  const Instant since = found == early.end() ? now_ : found->second.since;
  early[item] = {.via = via, .offer = message, .since = since};
  judge_early(from, item);
}

void VaultCore::take_early_offers() {
  std::vector<std::pair<HostId, VaultItem>> all;
  for (const auto& [from, offers] : early_) {
    for (const auto& [item, offer] : offers) all.emplace_back(from, item);
  }
  for (const auto& [from, item] : all) judge_early(from, item);
  std::erase_if(early_, [this](const auto& one) { return peer(one.first) == nullptr || one.second.empty(); });
}

// While it waits, its sender hears a sign of life.
void VaultCore::judge_early(HostId from, const VaultItem& item) {
  const EarlyOffer early = early_.at(from).at(item);
  const VaultKey& key = early.offer.key;
  const auto gang = gang_of(key.rank);
  const auto known = gang ? gangs_.find({key.rank.mesh, *gang}) : gangs_.end();
  const bool is_of_later =
      table_.version == 0 || !gang || (known != gangs_.end() && key.generation > known->second.generation);
  // Of one that the gang has gone on without, there is nothing to wait for.
  const bool is_over = !is_of_later && !to_give_up({{key, *gang, false}}, gangs_).empty();
  const bool is_sent = is_over || (!is_of_later && sends(from, key));
  const Duration patience = is_of_later ? kAnswerQuiet : kFullPatience;
  if (!is_sent && now_ < early.since + patience) {
    out_.emplace_back(vault_action::Send{from, early.via, VaultAsk{key, early.offer.digest, 0, 0}});
    return;
  }
  early_.at(from).erase(item);
  if (is_sent) return take_offer(from, early.via, early.offer);
  const std::string why = is_of_later ? "has not heard of that generation" : "is not told to keep copies of it";
  out_.emplace_back(vault_action::Send{from, early.via, VaultKept{key, early.offer.digest, why, false}});
}

bool VaultCore::sends(HostId from, const VaultKey& key) const {
  const auto found = gangs_.find({key.rank.mesh, *gang_of(key.rank)});
  if (found == gangs_.end()) return false;
  const auto& sources = found->second.sources;
  return std::any_of(sources.begin(), sources.end(), [&](const VaultSource& source) {
    const std::uint32_t first = source.first.value();
    return source.host == from && key.rank.rank.value() >= first && key.rank.rank.value() - first < source.count;
  });
}

// Few of these are ever alive; but nobody else says so than who sends them.
bool VaultCore::has_enough_of(HostId from, const RankId& rank) const {
  const auto first = blobs_.lower_bound(VaultItem{{rank, 0, 0}, {}});
  const auto last = std::find_if(first, blobs_.end(), [&](const auto& one) { return one.first.key.rank != rank; });
  const auto sent = std::count_if(first, last, [&](const auto& one) { return one.second.sender == from; });
  return static_cast<std::size_t>(sent) >= kOfOneRank;
}

// An equal part is one of as many as have something here, or want to. From senders that have more, what is on its way
// goes first, then what is newest and not committed, by a table that has had its time to come; at last what they would
// go on from.
bool VaultCore::give_way(std::optional<HostId> to, std::uint64_t bytes) {
  std::map<std::optional<HostId>, std::uint64_t> taken{{to, 0}};
  for (const auto& [item, blob] : blobs_) taken[blob.sender] += blob.bytes;
  const std::uint64_t part = options_.memory / taken.size();
  if (bytes > part || taken[to] > part - bytes) return false;
  while (!fits(bytes)) {
    const auto most = std::max_element(taken.begin(), taken.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.has_value(), a.second) < std::pair(b.first.has_value(), b.second);
    });
    if (!most->first || most->second <= part) return false;
    const auto is_committed = [this](const VaultItem& item, const Blob& blob) {
      const auto gang = gangs_.find({item.key.rank.mesh, blob.gang});
      return gang != gangs_.end() && gang->second.committed && item.key.step <= *gang->second.committed;
    };
    std::optional<std::pair<std::tuple<bool, bool, std::uint64_t>, VaultItem>> first;
    for (const auto& [item, blob] : blobs_) {
      if (blob.sender != most->first || blob.bytes == 0) continue;
      const auto turn = std::tuple(!blob.complete, !is_committed(item, blob), item.key.step);
      if (!first || turn > first->first) first.emplace(turn, item);
    }
    if (!first) return false;
    const VaultItem item = first->second;
    most->second -= blobs_.at(item).bytes;
    if (fetches_.contains(item)) {
      fetch_failed(item, "has no room: others have less than their part of it", true);
    } else {
      drop_blob(item);
    }
  }
  return true;
}

// The next table, and the offer of it, may have come meanwhile.
bool VaultCore::is_short_for_long(const VaultItem& item) {
  std::erase_if(short_since_, [this](const auto& one) { return now_ >= one.second + kFullPatience * 4; });
  if (short_since_.size() >= kShortOffers && !short_since_.contains(item)) return false;
  return now_ >= short_since_.try_emplace(item, now_).first->second + kFullPatience;
}

void VaultCore::take_offer(HostId from, PeerVia via, const VaultOffer& message) {
  const VaultItem item{message.key, message.digest};
  const auto say = [&](std::string refused, bool full = false) {
    out_.emplace_back(vault_action::Send{from, via, VaultKept{message.key, message.digest, std::move(refused), full}});
  };
  if (has_whole(item)) return say("");
  if (!to_give_up({{message.key, *gang_of(message.key.rank), false}}, gangs_).empty()) {
    return say(text("knows that the gang has gone on without step ", message.key.step));
  }
  if (const auto under_way = fetches_.find(item); under_way != fetches_.end()) {
    if (under_way->second.from == from && under_way->second.via == via) {
      // It may wait for others to come first: a sign of life.
      out_.emplace_back(vault_action::Send{from, via, VaultAsk{message.key, message.digest, 0, 0}});
      return;
    }
    // The connection is another one: what was asked for over the one before is not answered any more.
    if (searches_.contains(item)) return;
  }
  drop_blob(item);
  if (has_enough_of(from, message.key.rank)) {
    return say(text("has no room: it keeps ", kOfOneRank, " checkpoints of ", rank_name(message.key.rank)), true);
  }
  if (const std::string why = no_room_for(message.key, message.bytes); !why.empty()) {
    if (!is_short_for_long(item) || !give_way(from, message.bytes)) return say(text("has no room: ", why), true);
  }
  short_since_.erase(item);
  begin_fetch(item, message.bytes, from, via, from);
}

void VaultCore::on_message(HostId from, PeerVia /*via*/, const VaultKept& message) {
  const VaultItem item{message.key, message.digest};
  const auto found = copying_.find(item);
  if (found == copying_.end()) return;
  if (message.full) {
    const auto target = found->second.waiting.find(from);
    if (target == found->second.waiting.end()) return;
    target->second.heard = now_;
    if (!target->second.full_since) target->second.full_since = now_;
    if (now_ < *target->second.full_since + kFullPatience) return;  // it is offered again
  }
  if (!message.refused.empty()) {
    found->second.no_room = found->second.no_room || message.full;
    return without(item, from, message.refused);
  }
  if (found->second.waiting.erase(from) == 0) return;
  found->second.kept.push_back(from);
  settle(item);
}

void VaultCore::on_message(HostId from, PeerVia via, const VaultAsk& message) {
  const VaultItem item{message.key, message.digest};
  if (const auto copying = copying_.find(item); copying != copying_.end()) {
    const auto target = copying->second.waiting.find(from);
    if (target != copying->second.waiting.end()) target->second.heard = target->second.offered = now_;
  }
  VaultPiece piece{message.key, message.digest, message.offset, message.length, 0, {}};
  std::optional<BlobId> bytes;
  if (!has_whole(item)) {
    piece.refused = kNotHere;
  } else {
    const Blob& blob = blobs_.at(item);
    piece.total = blob.bytes;
    if (message.length > kVaultPieceBytes || message.offset > blob.bytes ||
        blob.bytes - message.offset < message.length) {
      piece.refused = "has no such piece of it";
    } else if (message.length > 0) {
      bytes = blob.id;
    }
  }
  out_.emplace_back(vault_action::Send{from, via, std::move(piece), bytes, bytes ? message.number : 0});
}

void VaultCore::on_message(HostId from, PeerVia via, const VaultPiece& message) {
  const VaultItem item{message.key, message.digest};
  const auto fetch = fetches_.find(item);
  if (fetch == fetches_.end()) {
    // The answer to a search: whether it has it, and how large it is.
    const auto search = searches_.find(item);
    if (search == searches_.end() || search->second.asked != from) return;
    std::string why = message.refused;
    if (why.empty()) {
      drop_blob(item);
      // The rank cannot go on without it: it has a place also where others' copies have taken all.
      const std::string full = no_room_for(message.key, message.total);
      if ((full.empty() || message.total <= options_.memory) && gang_of(message.key.rank)) {
        return begin_fetch(item, message.total, from, via);
      }
      why = text("has it, and there is no room here: ", full);
    }
    return search_without(item, from, why);
  }
  Fetch& under_way = fetch->second;
  const Blob& blob = blobs_.at(item);
  if (under_way.from != from || under_way.via != via) return;
  if (!message.refused.empty()) return fetch_failed(item, message.refused);
  if (!under_way.on_the_way.contains(message.offset) || message.length != piece_at(blob, message.offset)) {
    return;  // it came twice, or nobody asked for it
  }
  out_.emplace_back(vault_action::Write{blob.id, message.offset});
  piece_here(item, under_way, message.offset);
}

void VaultCore::on(const vault_event::PieceCame& event) {
  silent_.erase(event.from);
  probes_.erase(event.from);
  for (auto& [item, fetch] : fetches_) {
    if (fetch.from != event.from || fetch.via != event.via) continue;
    const auto asked = std::find_if(fetch.on_the_way.begin(), fetch.on_the_way.end(),
                                    [&](const auto& one) { return one.second.number == event.number; });
    if (asked == fetch.on_the_way.end()) continue;
    return piece_here(VaultItem(item), fetch, asked->first);
  }
}

// Some of it may come as messages all the same: what comes twice is passed over.
void VaultCore::on(const vault_event::BodiesLost& event) {
  for (auto& [item, fetch] : fetches_) {
    if (fetch.from != event.from || fetch.via != event.via) continue;
    for (const auto& [offset, asked] : fetch.on_the_way) ask_piece(item, fetch, offset);
  }
}

// It is written.
void VaultCore::piece_here(const VaultItem& item, Fetch& fetch, std::uint64_t offset) {
  fetch.on_the_way.erase(offset);
  fetch.received += piece_at(blobs_.at(item), offset);
  fetch.heard = now_;
  ask_pieces(item, fetch);
}

void VaultCore::begin_fetch(const VaultItem& item, std::uint64_t bytes, HostId from, PeerVia via,
                            std::optional<HostId> sender) {
  const Blob& blob = add_blob(item, bytes, sender);
  out_.emplace_back(vault_action::Create{blob.id, bytes});
  fetches_[item] = {.from = from, .via = via, .heard = now_};
  // A rank that waits to go on comes before copies.
  if (searches_.contains(item)) {
    fetch_order_.push_front(item);
  } else {
    fetch_order_.push_back(item);
  }
}

void VaultCore::activate_fetches() {
  const auto active = [this] {
    return static_cast<std::size_t>(
        std::count_if(fetches_.begin(), fetches_.end(), [](const auto& one) { return one.second.active; }));
  };
  while (!fetch_order_.empty() && active() < kFetches) {
    const VaultItem item = fetch_order_.front();
    fetch_order_.pop_front();
    Fetch& fetch = fetches_.at(item);
    fetch.active = true;
    fetch.heard = now_;
    ask_pieces(item, fetch);
  }
}

// The bytes of the piece that begins there.
std::uint32_t VaultCore::piece_at(const Blob& blob, std::uint64_t offset) const {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(options_.piece_bytes, blob.bytes - std::min(blob.bytes, offset)));
}

// Asked for again it has the number that it had: by either word it comes to the same place.
void VaultCore::ask_piece(const VaultItem& item, Fetch& fetch, std::uint64_t offset) {
  const Blob& blob = blobs_.at(item);
  AskedPiece& asked = fetch.on_the_way[offset];
  asked.at = now_;
  if (asked.number == 0) asked.number = next_piece_++;
  out_.emplace_back(vault_action::Send{
      fetch.from, fetch.via, VaultAsk{item.key, item.digest, offset, piece_at(blob, offset), asked.number}, blob.id});
}

// Also ends the fetch, once there is nothing more to ask for.
void VaultCore::ask_pieces(const VaultItem& item, Fetch& fetch) {
  Blob& blob = blobs_.at(item);
  while (fetch.next < blob.bytes && fetch.on_the_way.size() < kPiecesOnTheWay) {
    ask_piece(item, fetch, fetch.next);
    fetch.next += piece_at(blob, fetch.next);
  }
  if (fetch.received < blob.bytes) return;
  blob.complete = true;
  out_.emplace_back(vault_action::Close{blob.id});
  if (fetch.via == PeerVia::kTheirs) {
    out_.emplace_back(vault_action::Send{fetch.from, fetch.via, VaultKept{item.key, item.digest, {}, false}});
  }
  fetches_.erase(item);
  found(item);
}

void VaultCore::fetch_failed(const VaultItem& item, const std::string& why, bool full) {
  const auto fetch = fetches_.find(item);
  if (fetch == fetches_.end()) return;
  const Fetch failed = fetch->second;
  drop_blob(item);
  if (failed.via == PeerVia::kTheirs) {
    out_.emplace_back(vault_action::Send{failed.from, failed.via, VaultKept{item.key, item.digest, why, full}});
  }
  const auto search = searches_.find(item);
  if (search == searches_.end()) return;
  search_without(item, failed.from, why);
}

void VaultCore::on(const vault_event::BlobFailed& event) {
  for (const auto& [item, blob] : blobs_) {
    if (blob.id != event.blob) continue;
    const VaultItem failed = item;
    if (fetches_.contains(failed)) return fetch_failed(failed, event.why);
    return drop_blob(failed);
  }
}

void VaultCore::on(const vault_event::Tick& /*event*/) {
  look_at_fetches();
  look_at_copies();
  look_at_searches();
  take_waiting();
}

void VaultCore::look_at_fetches() {
  std::vector<VaultItem> silent;
  for (auto& [item, fetch] : fetches_) {
    if (!fetch.active) continue;
    if (now_ >= fetch.heard + kFetchQuiet) {
      silent.push_back(item);
      continue;
    }
    for (const auto& [offset, asked] : fetch.on_the_way) {
      if (now_ >= asked.at + kAskAgain) ask_piece(item, fetch, offset);
    }
  }
  for (const VaultItem& item : silent) fetch_failed(item, text("sent nothing for ", to_text(kFetchQuiet)));
}

void VaultCore::look_at_copies() {
  std::vector<std::pair<VaultItem, HostId>> silent;
  for (auto& [item, copying] : copying_) {
    for (auto& [host, target] : copying.waiting) {
      if (now_ >= target.heard + kAnswerQuiet) {
        silent.emplace_back(item, host);
      } else if (now_ >= target.offered + kAskAgain) {
        offer(item, host);
      }
    }
  }
  for (const auto& [item, host] : silent) {
    silent_.try_emplace(host, item);
    without(item, host, text("did not answer for ", to_text(kAnswerQuiet)));
  }
}

void VaultCore::look_at_searches() {
  std::vector<VaultItem> silent;
  for (const auto& [item, search] : searches_) {
    if (search.asked && !fetches_.contains(item) && now_ >= search.asked_at + kFetchQuiet) silent.push_back(item);
  }
  for (const VaultItem& item : silent) {
    search_without(item, *searches_.at(item).asked, text("did not answer for ", to_text(kFetchQuiet)));
  }
}

}  // namespace monarch
