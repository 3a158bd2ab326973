#include "worker/core/commit_question.h"

#include <optional>

#include "transport/base/text.h"
#include "worker/core/notify.h"
#include "worker/core/question_lines.h"

namespace monarch {

Result<CommitRequest> parse_commit(std::string_view message) {
  if (message.size() > kNotifyBytes) return wrong_question(text("a question has at most ", kNotifyBytes, " bytes"));
  const auto step = whole_number(line_value(message, "COMMIT").value_or(""));
  if (!step) return wrong_question("COMMIT is the number of a step");
  const std::string_view what = line_value(message, "WHAT").value_or("");
  if (what.size() > kCommitWhatBytes || !is_printable_ascii(what)) {
    return wrong_question(
        text("WHAT is a digest or a name of at most ", kCommitWhatBytes, " printable characters of ASCII"));
  }
  const std::string_view of = line_value(message, "OF").value_or("rank");
  if (of != "rank" && of != "gang") return wrong_question("OF is rank or gang");
  return CommitRequest{.number = 0, .step = *step, .what = std::string(what), .whole = of == "gang"};
}

std::string commit_answer(const CommitRequest& asked, const CommitAnswer& answer) {
  if (answer.committed) {
    const std::string gang = answer.gang ? text(*answer.gang) : "null";
    return text("{\"v\":1,\"ok\":true,\"step\":", asked.step, ",\"gang\":", gang, '}');
  }
  return text("{\"v\":1,\"ok\":false,\"step\":", asked.step, ",\"refused\":", quoted_ascii(answer.why), '}');
}

std::string commit_error(std::string_view why) { return text("{\"v\":1,\"error\":", quoted_ascii(why), '}'); }

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
  return text("{\"v\":1,\"step\":", *step, ",\"what\":", quoted_ascii(get("MONARCH_COMMITTED_WHAT")),
              ",\"generation\":", *generation, '}');
}

}  // namespace monarch
