#include "tests/sim/replay/action_words.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tests/sim/incarnation_text.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"

namespace monarch {

MONARCH_FIELDS(LaunchWorker, host)
MONARCH_FIELDS(SendReserve, host, message)
MONARCH_FIELDS(SendStart, host, message)
MONARCH_FIELDS(SendStop, host, message)
MONARCH_FIELDS(SendTell, host, message)
MONARCH_FIELDS(SendSignal, host, message)
MONARCH_FIELDS(SendCommitAnswer, host, message)
MONARCH_FIELDS(SendShutdown, host, message)
MONARCH_FIELDS(DestroyWorker, host)
MONARCH_FIELDS(EmitEvent, event)
MONARCH_FIELDS(FinishJob, verdict)

namespace sim {

namespace {

constexpr std::size_t kMostRanks = 8;     // that are named
constexpr std::size_t kBytesAround = 24;  // of a place where two encodings differ

std::string to_host(HostId host) { return text("to host ", host.value(), ": "); }

std::string generation_text(Generation generation) {
  return text(" generation ", generation.term.value(), ".", generation.counter);
}

std::string gang_text(MeshId mesh, GangId gang, Generation generation) {
  return text("gang ", gang.value(), " of mesh ", mesh.value(), generation_text(generation));
}

std::string ranks_text(const std::vector<RankId>& ranks, Generation generation) {
  std::vector<std::string> names;
  for (const RankId rank : ranks) names.push_back(text(rank.mesh.value(), "/", rank.rank.value()));
  if (names.size() > kMostRanks) {
    const std::size_t more = names.size() - kMostRanks;
    names.resize(kMostRanks);
    names.push_back(text("and ", more, " more"));
  }
  return join(names, " ") + generation_text(generation);
}

std::string words_of(const LaunchWorker& a) { return text("launch host ", a.host.value()); }
std::string words_of(const DestroyWorker& a) { return text("destroy the worker of host ", a.host.value()); }
std::string words_of(const SendReserve& a) {
  return text(to_host(a.host), "RESERVE for ", gang_text(a.message.mesh, a.message.gang, a.message.generation));
}
std::string words_of(const SendStart& a) {
  std::vector<RankId> ranks;
  for (const RankStart& each : a.message.ranks) ranks.push_back(each.rank);
  return text(to_host(a.host), "START of ", ranks_text(ranks, a.message.generation),
              a.message.standby ? ", to stand by" : "");
}
std::string words_of(const SendStop& a) {
  return text(to_host(a.host), "STOP of ", ranks_text(a.message.ranks, a.message.generation), ", signal ",
              a.message.signal, ", grace ", to_text(a.message.grace));
}
std::string words_of(const SendTell& a) {
  return text(to_host(a.host), "TELL ", ranks_text(a.message.ranks, a.message.generation), ": ", a.message.json);
}
std::string words_of(const SendSignal& a) {
  return text(to_host(a.host), "SIGNAL ", a.message.number, " for ", ranks_text(a.message.ranks, a.message.generation));
}
std::string words_of(const SendCommitAnswer& a) {
  return text(to_host(a.host), "answer to commit ", a.message.number, " of ", incarnation_text(a.message.process), ": ",
              a.message.committed ? "it counts" : "it does not, " + a.message.why);
}
std::string words_of(const SendShutdown& a) { return text(to_host(a.host), "SHUTDOWN, ", a.message.reason); }
std::string words_of(const EmitEvent& a) {
  const JobEvent& event = a.event;
  std::string who = event.host.empty() ? "" : text(", host ", event.host);
  if (!event.mesh.empty()) who += text(", ", event.mesh);
  if (event.rank) who += text("/", *event.rank);
  return text("event ", name_of(event.kind), who, ": ", event.message);
}
std::string words_of(const FinishJob& a) {
  return text("the end, exit code ", a.verdict.exit_code, ": ", a.verdict.reason);
}

// As text(), but that a byte of a length or number stays visible.
std::string around(std::string_view encoding, std::size_t at) {
  const std::size_t from = at - std::min(at, kBytesAround);
  return printable(encoding.substr(from, at - from + kBytesAround));
}

}  // namespace

std::string encode_action(const Action& action) {
  const auto* emitted = std::get_if<EmitEvent>(&action);
  if (emitted == nullptr) return encode_payload(action);
  EmitEvent unnumbered = *emitted;
  unnumbered.event.number = 0;
  return encode_payload(Action(std::move(unnumbered)));
}

std::string action_words(std::string_view encoding) {
  const Result<Action> action = decode_payload<Action>(encoding, encoding.size());
  if (!action.ok()) return text("an action that this tree does not know: ", action.error().message);
  return std::visit([](const auto& held) { return words_of(held); }, *action);
}

std::string event_words(const CoreEvent& event) {
  const std::type_info& type =
      std::visit([](const auto& held) -> const std::type_info& { return typeid(held); }, event);
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr),
                                                         &std::free);
  const std::string_view whole = name ? name.get() : type.name();
  const std::size_t colon = whole.rfind(':');
  return std::string(colon == std::string_view::npos ? whole : whole.substr(colon + 1));
}

std::string where_they_differ(std::string_view before, std::string_view now) {
  const auto [left, right] = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
  const auto at = static_cast<std::size_t>(left - before.begin());
  return text("at byte ", at, " of ", before.size(), " …", around(before, at), "…, now …", around(now, at), "…");
}

}  // namespace sim
}  // namespace monarch
