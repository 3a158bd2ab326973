#include "supervisor/client/away.h"

#include <algorithm>
#include <optional>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kDigestDigits = 64;

Error not_ours(const std::string& why) {
  return {ErrorCode::kInvalid, text("reading ", kAwayFile, ": ", printable(why))};
}

bool is_digest(const std::string& word) {
  return word.size() == kDigestDigits &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_path(const std::string& path) {
  return path.empty() || (path.front() == '/' && path.find_first_of(std::string_view("\n\0", 2)) == std::string::npos);
}

}  // namespace

std::string write_away(const Away& away) {
  return to_json(Json::object({{"v", 1},
                               {"host", away.host},
                               {"bundle", away.bundle},
                               {"monarch", away.monarch},
                               {"directory", away.directory},
                               {"monarch_bytes", away.monarch_bytes},
                               {"worker_bytes", away.worker_bytes}})) +
         "\n";
}

Result<Away> parse_away(const std::string& json) {
  const auto parsed = parse_json(json);
  if (!parsed.ok()) return not_ours(parsed.error().message);
  if (const auto version = parsed->get_int64("v"); version != 1) {
    return not_ours(version ? text("its version is ", *version, ", this build reads 1") : "it has no version");
  }
  Away away{.host = parsed->get_string("host").value_or(""),
            .bundle = parsed->get_string("bundle").value_or(""),
            .monarch = parsed->get_string("monarch").value_or(""),
            .directory = parsed->get_string("directory").value_or(""),
            .monarch_bytes = parsed->get_uint64("monarch_bytes").value_or(0),
            .worker_bytes = parsed->get_uint64("worker_bytes").value_or(0)};
  if (away.host.empty()) return not_ours("it names no host");
  if (!is_digest(away.bundle)) return not_ours(text("`", away.bundle, "` is no sha256"));
  if (!is_path(away.monarch)) return not_ours(text("`", away.monarch, "` is no absolute path"));
  if (!is_path(away.directory)) return not_ours(text("`", away.directory, "` is no absolute path"));
  return away;
}

}  // namespace monarch
