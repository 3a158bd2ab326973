// What ranks say and ask: whatever the bytes are, what is kept of them is within its limits, and what is said back is
// one line.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "transport/base/assert.h"
#include "worker/core/commit_question.h"
#include "worker/core/notify.h"
#include "worker/core/rank_voice.h"
#include "worker/core/vault/vault_question.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Notice notice = parse_notice(input);
  MONARCH_ASSERT(notice.metrics.size() <= kMetrics);
  MONARCH_ASSERT((notice.bad > 0) == !notice.first_bad.empty());
  RankVoice voice(Duration::milliseconds(250));
  voice.hear(notice, Instant::since_boot(Duration::seconds(1)));
  MONARCH_ASSERT((voice.due() == Instant::never()) == !notice.says_anything());
  const RankProgress& progress = voice.progress();
  MONARCH_ASSERT(progress.status.size() <= kStatusBytes && progress.phase.size() <= kPhaseBytes);
  MONARCH_ASSERT(progress.metrics == notice.metrics);
  for (const auto& [name, value] : progress.metrics) {
    MONARCH_ASSERT(!name.empty() && name.size() <= kMetricNameBytes);
    MONARCH_ASSERT(!value.empty() && value.size() <= kMetricValueBytes);
  }
  if (const auto commit = parse_commit(input); commit.ok()) {
    MONARCH_ASSERT(commit->what.size() <= kCommitWhatBytes);
    MONARCH_ASSERT(parse_question(input) != RankQuestion::kNone);
  }
  if (const auto asked = parse_vault_question(input); asked.ok()) {
    MONARCH_ASSERT(asked->hosts.size() <= kVaultHolders && asked->not_from.size() <= kVaultHolders);
    MONARCH_ASSERT(!asked->mesh.empty() && asked->digest.size() == 64);
  }
  for (const std::string& line : {commit_error(input), vault_error(input), vault_denied("full", input),
                                  committed_answer({{"MONARCH_COMMITTED_STEP", "1"},
                                                    {"MONARCH_COMMITTED_GENERATION", "1"},
                                                    {"MONARCH_COMMITTED_WHAT", std::string(input)}},
                                                   {})}) {
    for (const char c : line) MONARCH_ASSERT(c >= 0x20 && c != 0x7f);
  }
  if (parse_question(input) == RankQuestion::kNone) MONARCH_ASSERT(input.size() <= kNotifyBytes);
  for (const char c : who_answer({.job = "j", .mesh = std::string(input), .host = std::string(input)})) {
    MONARCH_ASSERT(static_cast<unsigned char>(c) >= 0x20);
  }
  return 0;
}
