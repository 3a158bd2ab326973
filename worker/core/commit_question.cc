#include "worker/core/commit_question.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include "transport/base/text.h"
#include "worker/core/notify.h"

namespace monarch {

namespace {

// The value of the first line with this key.
std::optional<std::string_view> value_of(std::string_view message, std::string_view key) {
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    const std::string_view line = message.substr(0, end);
    message.remove_prefix(std::min(end + 1, message.size()));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && line.substr(0, equals) == key) return line.substr(equals + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> whole_number(std::string_view word) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) return std::nullopt;
  return number;
}

// A string of JSON of what is printable ASCII, once it has been made so.
std::string quoted(std::string_view words) {
  std::string out = "\"";
  for (const char c : words) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c >= ' ' && c <= '~' ? c : '?');
  }
  out.push_back('"');
  return out;
}

Error wrong(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

}  // namespace

Result<CommitRequest> parse_commit(std::string_view message) {
  if (message.size() > kNotifyBytes) return wrong(text("a question has at most ", kNotifyBytes, " bytes"));
  const auto step = whole_number(value_of(message, "COMMIT").value_or(""));
  if (!step) return wrong("COMMIT is the number of a step");
  const std::string_view what = value_of(message, "WHAT").value_or("");
  if (what.size() > kCommitWhatBytes || !is_printable_ascii(what)) {
    return wrong(text("WHAT is a digest or a name of at most ", kCommitWhatBytes, " printable characters of ASCII"));
  }
  const std::string_view of = value_of(message, "OF").value_or("rank");
  if (of != "rank" && of != "gang") return wrong("OF is rank or gang");
  return CommitRequest{.number = 0, .step = *step, .what = std::string(what), .whole = of == "gang"};
}

std::string commit_answer(const CommitRequest& asked, const CommitAnswer& answer) {
  if (answer.committed) {
    const std::string gang = answer.gang ? text(*answer.gang) : "null";
    return text("{\"v\":1,\"ok\":true,\"step\":", asked.step, ",\"gang\":", gang, '}');
  }
  return text("{\"v\":1,\"ok\":false,\"step\":", asked.step, ",\"refused\":", quoted(answer.why), '}');
}

std::string commit_error(std::string_view why) { return text("{\"v\":1,\"error\":", quoted(why), '}'); }

std::string committed_answer(const std::map<std::string, std::string>& gang_env,
                             const std::map<std::string, std::string>& own_env) {
  const auto get = [&](const char* name) -> std::string_view {
    if (const auto own = own_env.find(name); own != own_env.end()) return own->second;
    const auto gang = gang_env.find(name);
    return gang != gang_env.end() ? std::string_view(gang->second) : std::string_view();
  };
  const auto step = whole_number(get("MONARCH_COMMITTED_STEP"));
  const auto generation = whole_number(get("MONARCH_COMMITTED_GENERATION"));
  if (!step || !generation) return "{\"v\":1,\"step\":null}";
  return text("{\"v\":1,\"step\":", *step, ",\"what\":", quoted(get("MONARCH_COMMITTED_WHAT")),
              ",\"generation\":", *generation, '}');
}

}  // namespace monarch
