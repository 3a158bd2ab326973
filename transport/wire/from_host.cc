#include "transport/wire/from_host.h"

#include <algorithm>

#include "transport/base/report_limits.h"
#include "transport/base/sha256.h"

namespace monarch {

namespace {

bool is_bounded(const RankProgress& progress) {
  return progress.phase.size() <= kPhaseBytes && progress.status.size() <= kStatusBytes &&
         progress.metrics.size() <= kMetrics &&
         std::all_of(progress.metrics.begin(), progress.metrics.end(), [](const auto& metric) {
           return metric.first.size() <= kMetricNameBytes && metric.second.size() <= kMetricValueBytes;
         });
}

bool is_bounded(const RankReport& report) {
  return report.end.detail.size() <= limits::kExplanationBytes && is_bounded(report.progress) &&
         (!report.commit || report.commit->what.size() <= kCommitWhatBytes);
}

bool is_bounded(const PostReport& report) {
  return report.words.size() <= kPostWords && report.before.size() <= limits::kExplanationBytes &&
         report.owners.size() <= kOwnersReported && report.wishes.size() <= kWishesReported &&
         std::all_of(report.wishes.begin(), report.wishes.end(),
                     [](const PostWish& wish) {
                       return text_bytes(wish.what) <= kClaimBytes && wish.what.dims.size() <= kClaimDims;
                     }) &&
         std::all_of(report.words.begin(), report.words.end(),
                     [](const PostWord& word) { return word.text.size() <= limits::kExplanationBytes; });
}

bool is_bounded(const CallBody& body) { return body.here.data.size() <= kBodyHereBytes; }

bool is_bounded(const ProcessStacks& process) {
  return process.name.size() <= limits::kNameBytes && process.state.size() <= limits::kNameBytes &&
         process.detail.size() <= limits::kExplanationBytes && process.output.size() <= limits::kStacksBytes;
}

}  // namespace

bool is_bounded(const CallTarget& target) {
  return target.actor.size() <= kActorNameBytes && target.endpoint.size() <= kActorNameBytes &&
         target.signature.size() <= kSignatureBytes;
}

bool is_bounded(const CallOutcome& outcome) {
  return outcome.type.size() <= kOutcomeTextBytes && outcome.text.size() <= kOutcomeTextBytes &&
         outcome.traceback.size() <= kOutcomeTextBytes && outcome.personal.data.size() <= kPersonalSecretBytes;
}

bool is_bounded(const Hello& hello) {
  return hello.host_name.size() <= limits::kNameBytes && hello.boot_id.size() <= limits::kWordBytes &&
         hello.version.size() <= limits::kWordBytes && hello.door.size() <= limits::kPathBytes;
}

bool is_bounded(const Beat& beat) {
  const BeatContent& content = beat.content;
  return content.ranks.size() <= limits::kRanksPerJob && content.output_failure.size() <= limits::kExplanationBytes &&
         (!content.post || is_bounded(*content.post)) &&
         std::all_of(content.ranks.begin(), content.ranks.end(),
                     [](const RankReport& report) { return is_bounded(report); });
}

bool is_bounded(const Reserved& reserved) {
  return reserved.ports.size() <= limits::kRanksPerJob && reserved.error.size() <= limits::kExplanationBytes;
}

bool is_bounded(const InputTaken& /*numbers alone*/) { return true; }
bool is_bounded(const Goodbye& /*numbers alone*/) { return true; }
bool is_bounded(const KeeperGone& /*numbers alone*/) { return true; }
bool is_bounded(const OutputGone& /*numbers alone*/) { return true; }

bool is_bounded(const Output& output) { return output.bytes.size() <= limits::kOutputChunkBytes; }

bool is_bounded(const Stacks& stacks) {
  return stacks.detail.size() <= limits::kExplanationBytes && stacks.processes.size() <= limits::kStackProcesses &&
         std::all_of(stacks.processes.begin(), stacks.processes.end(),
                     [](const ProcessStacks& process) { return is_bounded(process); });
}

bool is_bounded(const VaultOffer& offer) { return offer.digest.size() <= limits::kWordBytes; }

bool is_bounded(const VaultKept& kept) {
  return kept.digest.size() <= limits::kWordBytes && kept.refused.size() <= limits::kExplanationBytes;
}

bool is_bounded(const VaultAsk& ask) { return ask.digest.size() <= limits::kWordBytes; }

bool is_bounded(const VaultPiece& piece) {
  return piece.digest.size() <= limits::kWordBytes && piece.refused.size() <= limits::kExplanationBytes;
}

bool is_bounded(const LineHello& /*numbers alone*/) { return true; }
bool is_bounded(const LineAccepted& /*numbers alone*/) { return true; }
bool is_bounded(const LineOther& /*numbers alone*/) { return true; }
bool is_bounded(const LineResync& /*numbers alone*/) { return true; }
bool is_bounded(const LineTakeBack& /*numbers alone*/) { return true; }
bool is_bounded(const LineHeard& /*numbers alone*/) { return true; }

// Each rank once: it is answered by itself.
bool is_bounded(const LineAsks& asks) {
  if (asks.ranks.size() > kRanksOfAnAsk || !is_bounded(asks.target) || !is_bounded(asks.body)) return false;
  std::vector<Rank> ranks;
  for (const AskedRank& asked : asks.ranks) {
    if (!asked.nobody) ranks.push_back(asked.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end() && asks.caller.mesh.size() <= limits::kNameBytes;
}

bool is_bounded(const LineAnswer& answer) { return is_bounded(answer.outcome) && is_bounded(answer.outcome.body); }

bool is_bounded(const LineAnswers& answers) {
  return answers.answers.size() <= kAnswersTogether &&
         std::all_of(answers.answers.begin(), answers.answers.end(), [](const NumberedOutcome& one) {
           return is_bounded(one.outcome) && is_bounded(one.outcome.body) && one.outcome.body.way != BodyWay::kBeside;
         });
}

bool is_bounded(const BootstrapReply& reply) {
  const auto is_word = [](const std::string& word) { return word.size() <= limits::kWordBytes; };
  return is_word(reply.public_key) && is_word(reply.boot_id) && is_word(reply.version) && is_word(reply.host_address) &&
         is_word(reply.architecture) && reply.error.size() <= limits::kExplanationBytes &&
         reply.log_directory.size() <= limits::kPathBytes && reply.inventory.gpus.size() <= limits::kGpusPerHost &&
         std::all_of(reply.inventory.gpus.begin(), reply.inventory.gpus.end(),
                     [&](const Gpu& gpu) { return is_word(gpu.uuid); });
}

}  // namespace monarch
