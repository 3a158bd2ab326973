#include "cli/values.h"

#include <algorithm>
#include <charconv>

#include "supervisor/spec/scalar.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

bool take_rank(std::string_view& rest, std::uint32_t& rank) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

}  // namespace

Result<RankList> RankList::parse(std::string_view written) {
  const Error wrong{ErrorCode::kInvalid, text("`", printable(written), "` is no list of ranks, such as 3,7-9")};
  RankList list;
  std::string_view rest = written;
  for (;;) {
    Range range;
    if (!take_rank(rest, range.first)) return wrong;
    range.last = range.first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (!take_rank(rest, range.last) || range.last < range.first) return wrong;
    }
    list.ranges_.push_back(range);
    if (rest.empty()) return list;
    if (!rest.starts_with(',')) return wrong;
    rest.remove_prefix(1);
  }
}

bool RankList::contains(std::uint32_t rank) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const Range& range) { return range.first <= rank && rank <= range.last; });
}

std::uint32_t RankList::largest() const {
  std::uint32_t largest = 0;
  for (const Range& range : ranges_) largest = std::max(largest, range.last);
  return largest;
}

Result<std::optional<Duration>> duration_flag(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string> written = arguments.value(flag);
  if (!written) return std::optional<Duration>();
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = *written;
  const Scalar<Duration> duration = parse_duration(node);
  if (duration.value) return duration.value;
  return Error{ErrorCode::kInvalid,
               text("--", flag, " ", printable(*written), ": ", duration.wrong.label,
                    duration.wrong.right.empty() ? "" : text("; did you mean ", duration.wrong.right, "?"))};
}

Result<std::optional<RankList>> ranks_flag(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string> written = arguments.value(flag);
  if (!written) return std::optional<RankList>();
  auto list = RankList::parse(*written);
  if (list.ok()) return std::optional<RankList>(std::move(*list));
  return Error{ErrorCode::kInvalid, text("--", flag, ": ", list.error().message)};
}

}  // namespace monarch
