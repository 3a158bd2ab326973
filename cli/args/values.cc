#include "cli/args/values.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "supervisor/spec/yaml/scalar.h"
#include "transport/base/text.h"

namespace monarch {

bool take_character(std::string_view& rest, char wanted) {
  if (!rest.starts_with(wanted)) return false;
  rest.remove_prefix(1);
  return true;
}

bool take_number(std::string_view& rest, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

Result<RankList> RankList::parse(std::string_view written) {
  const Error wrong{ErrorCode::kInvalid, text("`", printable(written), "` is no list of ranks, such as 3,7-9")};
  RankList list;
  std::string_view rest = written;
  for (;;) {
    Range range;
    if (!take_number(rest, range.first)) return wrong;
    range.last = range.first;
    if (take_character(rest, '-')) {
      if (!take_number(rest, range.last) || range.last < range.first) return wrong;
    }
    list.ranges_.push_back(range);
    if (rest.empty()) return list;
    if (!take_character(rest, ',')) return wrong;
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

Result<std::optional<std::uint64_t>> count_flag(const Arguments& arguments, std::string_view flag) {
  const std::optional<std::string> written = arguments.value(flag);
  if (!written) return std::optional<std::uint64_t>();
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(written->data(), written->data() + written->size(), count);
  if (error == std::errc() && end == written->data() + written->size()) return std::optional<std::uint64_t>(count);
  return Error{ErrorCode::kInvalid, text("--", flag, " ", printable(*written), ": is no number, such as 100")};
}

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;

// Exactly `digits` of them.
bool take_digits(std::string_view& rest, std::size_t digits, int& number) {
  if (rest.size() < digits) return false;
  number = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (rest[i] < '0' || rest[i] > '9') return false;
    number = number * 10 + (rest[i] - '0');
  }
  rest.remove_prefix(digits);
  return true;
}

// "12:04", "12:04:41" or "12:04:41.120", since midnight.
std::optional<std::int64_t> take_time_of_day(std::string_view& rest) {
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  std::int64_t fraction = 0;
  if (!take_digits(rest, 2, hours) || !take_character(rest, ':') || !take_digits(rest, 2, minutes)) return std::nullopt;
  if (take_character(rest, ':') && !take_digits(rest, 2, seconds)) return std::nullopt;
  if (hours > 23 || minutes > 59 || seconds > 60) return std::nullopt;
  if (take_character(rest, '.')) {
    std::int64_t scale = kSecond / 10;
    for (; !rest.empty() && rest.front() >= '0' && rest.front() <= '9' && scale > 0; scale /= 10) {
      fraction += (rest.front() - '0') * scale;
      rest.remove_prefix(1);
    }
  }
  return (hours * 3600LL + minutes * 60LL + seconds) * kSecond + fraction;
}

std::optional<std::int64_t> take_date(std::string_view& rest) {
  int year = 0;
  int month = 0;
  int day = 0;
  if (!take_digits(rest, 4, year) || !take_character(rest, '-') || !take_digits(rest, 2, month) ||
      !take_character(rest, '-') || !take_digits(rest, 2, day)) {
    return std::nullopt;
  }
  std::tm parts{};
  parts.tm_year = year - 1900;
  parts.tm_mon = month - 1;
  parts.tm_mday = day;
  const std::int64_t seconds = ::timegm(&parts);
  // What the calendar does not have was moved to another day.
  if (parts.tm_mon != month - 1 || parts.tm_mday != day || year < 1970) return std::nullopt;
  return seconds * kSecond;
}

}  // namespace

Result<WallTime> parse_moment(std::string_view written, WallTime now) {
  const Error wrong{ErrorCode::kInvalid,
                    text(printable(written), ": is no moment, such as 10m (ago), 12:04:41 or 2026-11-20T12:04:41Z")};
  std::string_view rest = written;
  if (const auto date = take_date(rest)) {
    std::int64_t time = *date;
    if (!rest.empty() && rest != "Z") {
      if (!take_character(rest, 'T') && !take_character(rest, ' ')) return wrong;
      const auto of_day = take_time_of_day(rest);
      if (!of_day) return wrong;
      time += *of_day;
    }
    return rest.empty() || rest == "Z" ? Result<WallTime>(WallTime{time}) : Result<WallTime>(wrong);
  }
  rest = written;
  if (const auto of_day = take_time_of_day(rest)) {
    if (!rest.empty() && rest != "Z") return wrong;
    const std::int64_t today = now.nanoseconds_since_epoch / kDay * kDay + *of_day;
    return WallTime{today > now.nanoseconds_since_epoch ? today - kDay : today};
  }
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = written;
  const Scalar<Duration> ago = parse_duration(node);
  if (!ago.value || *ago.value == Duration::forever()) return wrong;
  return WallTime{now.nanoseconds_since_epoch - ago.value->count_nanoseconds()};
}

Result<std::optional<WallTime>> moment_flag(const Arguments& arguments, std::string_view flag, WallTime now) {
  const std::optional<std::string> written = arguments.value(flag);
  if (!written) return std::optional<WallTime>();
  const auto moment = parse_moment(*written, now);
  if (moment.ok()) return std::optional<WallTime>(*moment);
  return Error{ErrorCode::kInvalid, text("--", flag, " ", moment.error().message)};
}

}  // namespace monarch
