#include "worker/core/vault/vault_question.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "transport/base/text.h"
#include "worker/core/notify.h"
#include "worker/core/question_lines.h"

namespace monarch {

namespace {

constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kMeshNameBytes = 64;

bool is_digest(std::string_view word) {
  return word.size() == kDigestDigits &&
         std::all_of(word.begin(), word.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::optional<std::uint32_t> small_number(std::string_view word) {
  const auto number = whole_number(word);
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

// "0,4"; an empty word is no host at all.
std::optional<std::vector<HostId>> host_list(std::string_view word) {
  std::vector<HostId> hosts;
  while (!word.empty()) {
    const std::size_t end = std::min(word.find(','), word.size());
    const auto number = small_number(word.substr(0, end));
    if (!number || hosts.size() == kVaultHolders) return std::nullopt;
    hosts.emplace_back(*number);
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  return hosts;
}

std::string host_numbers(const std::vector<HostId>& hosts) {
  std::string out = "[";
  for (const HostId host : hosts) out += text(out.size() > 1 ? "," : "", host.value());
  return out + "]";
}

}  // namespace

Result<VaultQuestion> parse_vault_question(std::string_view message) {
  if (message.size() > kNotifyBytes) return wrong_question(text("a question has at most ", kNotifyBytes, " bytes"));
  const std::string_view kind = line_value(message, "VAULT").value_or("");
  if (kind != "save" && kind != "load") return wrong_question("VAULT is save or load");
  VaultQuestion asked{.kind = kind == "save" ? VaultAsks::kSave : VaultAsks::kLoad};
  asked.mesh = line_value(message, "MESH").value_or("");
  if (asked.mesh.empty() || asked.mesh.size() > kMeshNameBytes || !is_printable_ascii(asked.mesh)) {
    return wrong_question("MESH is the name of a mesh");
  }
  const auto rank = small_number(line_value(message, "RANK").value_or(""));
  if (!rank) return wrong_question("RANK is the number of a rank");
  asked.rank = Rank(*rank);
  const auto generation = whole_number(line_value(message, "GENERATION").value_or(""));
  if (!generation) return wrong_question("GENERATION is the number of a generation");
  asked.generation = *generation;
  const auto step = whole_number(line_value(message, "STEP").value_or(""));
  if (!step) return wrong_question("STEP is the number of a step");
  asked.step = *step;
  const std::string_view digest = line_value(message, "DIGEST").value_or("");
  if (!is_digest(digest))
    return wrong_question("DIGEST is the sha256 of the checkpoint, 64 hex digits in small letters");
  asked.digest = digest;
  auto hosts = host_list(line_value(message, "HOSTS").value_or(""));
  auto not_from = host_list(line_value(message, "NOT").value_or(""));
  if (!hosts || !not_from)
    return wrong_question(text("HOSTS and NOT are at most ", kVaultHolders, " numbers of hosts"));
  asked.hosts = std::move(*hosts);
  asked.not_from = std::move(*not_from);
  return asked;
}

std::string vault_saved(const std::vector<HostId>& hosts, std::string_view too_few) {
  const std::string rest = too_few.empty() ? "" : text(",\"short\":", quoted_ascii(too_few));
  return text("{\"v\":1,\"ok\":true,\"hosts\":", host_numbers(hosts), rest, '}');
}

std::string vault_found(HostId host, std::uint64_t bytes) {
  return text("{\"v\":1,\"ok\":true,\"host\":", host.value(), ",\"bytes\":", bytes, '}');
}

std::string vault_denied(std::string_view kind, std::string_view why) {
  return text("{\"v\":1,\"ok\":false,", quoted_ascii(kind), ':', quoted_ascii(why), '}');
}

std::string vault_error(std::string_view why) { return text("{\"v\":1,\"error\":", quoted_ascii(why), '}'); }

}  // namespace monarch
