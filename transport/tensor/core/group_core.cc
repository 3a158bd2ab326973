#include "transport/tensor/core/group_core.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kMissingNamed = 8;

}  // namespace

GroupActions GroupCore::step(const GroupEvent& event, Instant now) {
  now_ = now;
  out_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  if (!waiting_.empty() && waiting_.size() == waiting_.begin()->second.members.size()) answer_all();
  tell_who_waits();
  return std::exchange(out_, {});
}

void GroupCore::on(const group_event::Call& event) {
  const auto refuse = [&] {
    out_.emplace_back(
        group_action::Unfit{event.link, text(event.member.name(), " calls ", options_.first.name(), " for a group of ",
                                             event.members.text(), ", and one of both has no place in that")});
  };
  if (!event.members.find(event.member)) return refuse();
  const CallId id{event.generation, event.number};
  CallId& newest = newest_[event.member];
  if (newest > id) return;
  newest = id;
  end_epoch(event.member, text(event.member.name(), " has called for the next epoch"));
  waiting_.erase(event.member);
  if (!agrees(event)) return;
  if (event.members.at(0) != options_.first) return refuse();
  waiting_[event.member] = {.link = event.link,
                            .generation = event.generation,
                            .number = event.number,
                            .members = event.members,
                            .offer = event.offer,
                            .told = {}};
}

// Who waits agrees with all others who do: no group comes of lists that differ, and each of them hears of it.
bool GroupCore::agrees(const group_event::Call& event) {
  if (waiting_.empty() || waiting_.begin()->second.members == event.members) return true;
  const auto& [member, other] = *waiting_.begin();
  const std::string why = text("members disagree: ", member.name(), " has ", other.members.text(), "; ",
                               event.member.name(), " has ", event.members.text());
  for (const auto& [name, waits] : waiting_) out_.emplace_back(group_action::Unfit{waits.link, why});
  out_.emplace_back(group_action::Unfit{event.link, why});
  waiting_.clear();
  return false;
}

void GroupCore::on(const group_event::Left& event) {
  std::erase_if(waiting_, [&event](const auto& one) { return one.second.link == event.link; });
  if (!current_) return;
  const auto seat = std::find_if(current_->seats.begin(), current_->seats.end(),
                                 [&event](const Seat& one) { return one.link == event.link; });
  if (seat == current_->seats.end()) return;
  const GroupMember member = current_->members.at(static_cast<std::uint32_t>(seat - current_->seats.begin()));
  end_epoch(member, event.link == 0 ? text(member.name(), " has left the group")
                                    : text("the connection to ", member.name(), " ended"));
}

void GroupCore::on(const group_event::Failed& event) {
  CallId& newest = newest_[event.member];
  newest = std::max(newest, CallId{event.generation, UINT64_MAX});
  const auto waits = waiting_.find(event.member);
  if (waits != waiting_.end() && waits->second.generation <= event.generation) waiting_.erase(waits);
  const auto index = current_ ? current_->members.find(event.member) : std::nullopt;
  if (!index || current_->seats[*index].generation > event.generation) return;
  end_epoch(event.member, text(event.member.name(), " is lost: ", event.cause));
}

void GroupCore::end_epoch(const GroupMember& left, const std::string& why) {
  if (!current_) return;
  const std::optional<std::uint32_t> index = current_->members.find(left);
  for (std::uint32_t member = 0; member < current_->members.size(); ++member) {
    if (member == index) continue;
    out_.emplace_back(
        group_action::Lost{current_->seats[member].link, {options_.generation, current_->count}, index, why});
  }
  current_.reset();
}

void GroupCore::answer_all() {
  Epoch epoch{.count = ++count_, .members = waiting_.begin()->second.members, .seats = {}};
  GroupMeeting meeting{.epoch = {options_.generation, count_}, .generations = {}, .offer = {}};
  meeting.offer = waiting_.at(options_.first).offer;
  for (std::uint32_t member = 0; member < epoch.members.size(); ++member) {
    const Waiting& one = waiting_.at(epoch.members.at(member));
    epoch.seats.push_back({one.link, one.generation});
    meeting.generations.push_back(one.generation);
  }
  for (const auto& [name, one] : waiting_) out_.emplace_back(group_action::Answer{one.link, one.number, meeting});
  waiting_.clear();
  current_ = std::move(epoch);
}

void GroupCore::tell_who_waits() {
  const bool due = now_ >= tell_at_;
  Instant next = Instant::never();
  std::optional<std::string> words;  // the same for all
  for (auto& [member, one] : waiting_) {
    next = due ? now_ + kWaitsEvery : std::min(tell_at_, now_ + kWaitsEvery);
    if (!std::exchange(one.asks, false) && !due) continue;
    if (!words) words = missing();
    if (*words == one.told) continue;
    one.told = *words;
    out_.emplace_back(group_action::Waits{one.link, *words});
  }
  tell_at_ = next;
}

std::string GroupCore::missing() const {
  const GroupMembers& members = waiting_.begin()->second.members;
  std::vector<std::string> named;
  const std::size_t all = members.size() - waiting_.size();
  for (std::uint32_t member = 0; member < members.size() && named.size() < std::min(all, kMissingNamed); ++member) {
    if (!waiting_.contains(members.at(member))) named.push_back(members.at(member).name());
  }
  const std::string more = all > named.size() ? text(" and ", all - named.size(), " more") : "";
  return text(join(named, ", "), more, all == 1 ? " has" : " have", " not called");
}

}  // namespace monarch::tensor
