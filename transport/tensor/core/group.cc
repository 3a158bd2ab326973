#include "transport/tensor/core/group.h"

#include <algorithm>
#include <tuple>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kRunsNamed = 16;

}  // namespace

std::string GroupMember::name() const { return monarch::text(printable(mesh), '/', rank); }

std::optional<GroupMembers> GroupMembers::read(const std::vector<MemberRun>& runs) {
  GroupMembers made;
  if (runs.empty() || runs.size() > kMostMemberRuns) return std::nullopt;
  for (const MemberRun& run : runs) {
    if (run.count == 0 || run.count > kMostMembers - made.size_ || run.mesh.empty()) return std::nullopt;
    if (run.first > UINT32_MAX - run.count) return std::nullopt;
    const MemberRun* const last = made.runs_.empty() ? nullptr : &made.runs_.back();
    const bool joins = last != nullptr && last->mesh == run.mesh && last->first + last->count == run.first;
    if (joins) return std::nullopt;  // as one run it would be another form
    made.runs_.push_back(run);
    made.size_ += run.count;
  }
  std::vector<MemberRun> sorted = runs;
  std::sort(sorted.begin(), sorted.end(), [](const MemberRun& a, const MemberRun& b) {
    return std::tie(a.mesh, a.first) < std::tie(b.mesh, b.first);
  });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const MemberRun& before = sorted[i - 1];
    if (before.mesh == sorted[i].mesh && sorted[i].first - before.first < before.count) return std::nullopt;
  }
  return made;
}

bool GroupMembers::add(const GroupMember& member) {
  if (find(member) || size_ == kMostMembers) return false;
  MemberRun* const last = runs_.empty() ? nullptr : &runs_.back();
  if (last != nullptr && last->mesh == member.mesh && last->first + last->count == member.rank) {
    ++last->count;
  } else if (runs_.size() < kMostMemberRuns) {
    runs_.push_back({member.mesh, member.rank, 1});
  } else {
    return false;
  }
  ++size_;
  return true;
}

GroupMember GroupMembers::at(std::uint32_t index) const {
  for (const MemberRun& run : runs_) {
    if (index < run.count) return {run.mesh, run.first + index};
    index -= run.count;
  }
  return {};
}

std::optional<std::uint32_t> GroupMembers::find(const GroupMember& member) const {
  std::uint32_t before = 0;
  for (const MemberRun& run : runs_) {
    if (run.mesh == member.mesh && member.rank >= run.first && member.rank - run.first < run.count) {
      return before + (member.rank - run.first);
    }
    before += run.count;
  }
  return std::nullopt;
}

std::string GroupMembers::text() const {
  std::vector<std::string> named;
  std::uint32_t left = size_;
  for (const MemberRun& run : runs_) {
    if (named.size() == kRunsNamed) break;
    const std::string last = run.count > 1 ? monarch::text(" to ", run.first + run.count - 1) : "";
    named.push_back(GroupMember{run.mesh, run.first}.name() + last);
    left -= run.count;
  }
  return join(named, ", ") + (left > 0 ? monarch::text(" and ", left, " more") : "");
}

}  // namespace monarch::tensor
