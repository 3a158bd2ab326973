#include "transport/tensor/core/registrar_core.h"

#include <algorithm>
#include <vector>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kRanksNamed = 8;

// "rank 3", "ranks 3, 5 and 9 more".
std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> named;
  for (const std::uint32_t rank : ranks) {
    if (named.size() < kRanksNamed) named.push_back(text(rank));
  }
  const std::size_t more = ranks.size() - named.size();
  return text(ranks.size() == 1 ? "rank " : "ranks ", join(named, ", "), more > 0 ? text(" and ", more, " more") : "");
}

}  // namespace

RegistrarActions RegistrarCore::step(const RegistrarEvent& event, Instant now) {
  now_ = now;
  out_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  look_what_is_whole();
  answer();
  tell_who_waits();
  look_at_the_end();
  return std::exchange(out_, {});
}

void RegistrarCore::on(const registrar_event::Publishes& event) {
  if (!options_.publishers.contains(event.rank)) {
    out_.emplace_back(registrar_action::Unfit{event.rank, "it is none of the publishers"});
    return;
  }
  if (publishers_.contains(event.rank)) return;  // it has come again
  const Status fits = index_.add(event.rank, event.index);
  if (!fits.ok()) {
    out_.emplace_back(registrar_action::Unfit{event.rank, fits.error().message});
    return;
  }
  publishers_.try_emplace(event.rank);
}

void RegistrarCore::on(const registrar_event::Holds& event) {
  const auto publisher = publishers_.find(event.rank);
  if (publisher == publishers_.end()) return;
  std::deque<std::uint64_t>& holds = publisher->second.holds;
  if (!holds.empty() && event.number <= holds.back()) return;
  holds.push_back(event.number);
  if (holds.size() > options_.slots) holds.pop_front();
}

void RegistrarCore::on(const registrar_event::Ends& event) {
  const auto publisher = publishers_.find(event.rank);
  if (publisher != publishers_.end()) publisher->second.ended = true;
}

void RegistrarCore::on(const registrar_event::PublisherLeft& event) {
  const auto publisher = publishers_.find(event.rank);
  if (publisher != publishers_.end()) publisher->second.holds.clear();
}

void RegistrarCore::on(const registrar_event::Open& event) {
  Reader& reader = readers_[event.reader];
  reader.open = event;
  reader.asks = true;
}

void RegistrarCore::on(const registrar_event::Read& event) {
  const auto reader = readers_.find(event.reader);
  if (reader == readers_.end()) return;
  reader->second.read = std::max(reader->second.read, std::optional(event.number));
  was_read_ = true;
}

// The newest that all hold.
void RegistrarCore::look_what_is_whole() {
  offered_.reset();
  if (publishers_.empty() || publishers_.size() < options_.publishers.size()) return;
  const std::deque<std::uint64_t>& first = publishers_.begin()->second.holds;
  for (auto number = first.rbegin(); number != first.rend(); ++number) {
    const bool whole = std::all_of(publishers_.begin(), publishers_.end(), [number](const auto& one) {
      const std::deque<std::uint64_t>& holds = one.second.holds;
      return std::find(holds.begin(), holds.end(), *number) != holds.end();
    });
    if (!whole) continue;
    offered_ = *number;
    if (told_ < offered_) out_.emplace_back(registrar_action::AllHold{*(told_ = offered_)});
    return;
  }
}

bool RegistrarCore::has_ended() const {
  return publishers_.size() == options_.publishers.size() && !publishers_.empty() &&
         std::all_of(publishers_.begin(), publishers_.end(), [](const auto& one) { return one.second.ended; });
}

void RegistrarCore::answer() {
  for (auto& [number, reader] : readers_) {
    if (!reader.open) continue;
    const auto& newer_than = reader.open->newer_than;
    if (offered_ && (!newer_than || VersionId{options_.generation, *offered_} > *newer_than)) {
      out_.emplace_back(registrar_action::Opened{number, *offered_, !reader.open->knows_index});
      reader.told.clear();
    } else if (has_ended()) {
      out_.emplace_back(registrar_action::Over{number});
    } else {
      continue;
    }
    reader.open.reset();
  }
}

void RegistrarCore::tell_who_waits() {
  const bool due = now_ >= tell_at_;
  Instant next = Instant::never();
  std::optional<Late> late;  // the same for all
  for (auto& [number, reader] : readers_) {
    if (!reader.open) continue;
    next = due ? now_ + kWaitsEvery : std::min(tell_at_, now_ + kWaitsEvery);
    if (!std::exchange(reader.asks, false) && !due) continue;
    if (!late) late = who_is_late();
    const auto& newer_than = reader.open->newer_than;
    const bool has_it = newer_than && late->version && VersionId{options_.generation, *late->version} <= *newer_than;
    const std::string words = has_it ? "" : late->words;
    if (words == reader.told) continue;
    reader.told = words;
    out_.emplace_back(registrar_action::Waits{number, words});
  }
  tell_at_ = next;
}

RegistrarCore::Late RegistrarCore::who_is_late() const {
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t rank : options_.publishers) {
    if (!publishers_.contains(rank)) ranks.push_back(rank);
  }
  if (!ranks.empty()) {
    return {std::nullopt,
            text(ranks_text(ranks), " of its gang ", ranks.size() == 1 ? "has" : "have", " not published it yet")};
  }
  std::optional<std::uint64_t> newest;
  for (const auto& [rank, publisher] : publishers_) {
    if (!publisher.holds.empty()) newest = std::max(newest, std::optional(publisher.holds.back()));
  }
  for (const auto& [rank, publisher] : publishers_) {
    if (newest && (publisher.holds.empty() || publisher.holds.back() < *newest)) ranks.push_back(rank);
  }
  if (ranks.empty()) return {newest, ""};
  return {newest, text("version ", *newest, " is not there yet at ", ranks_text(ranks))};
}

void RegistrarCore::look_at_the_end() {
  if (released_ || !has_ended()) return;
  linger_until_ = std::min(linger_until_, now_ + options_.linger);
  const bool all_have_it = std::all_of(readers_.begin(), readers_.end(),
                                       [this](const auto& one) { return !offered_ || one.second.read >= offered_; });
  const bool waits_for_first = offered_ && !was_read_;
  if ((waits_for_first || !all_have_it) && now_ < linger_until_) return;
  released_ = true;
  out_.emplace_back(registrar_action::Release{});
}

}  // namespace monarch::tensor
