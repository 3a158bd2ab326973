#include "cli/drill/drill_targets.h"

#include <charconv>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::optional<std::string> word(const std::string& written) {
  if (written.empty() || written == drill::kRandom) return std::nullopt;
  return written;
}

std::optional<std::uint32_t> gang_word(const std::string& written) {
  std::uint32_t gang = 0;
  const char* const end = written.data() + written.size();
  const auto read = std::from_chars(written.data(), end, gang);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return gang;
}

}  // namespace

DrillTargets::DrillTargets(const JobSpec& spec, std::vector<std::string> named_hosts)
    : spec_(spec), named_hosts_(std::move(named_hosts)) {}

std::optional<std::string> DrillTargets::objection(const drill::FaultTarget& target) const {
  const auto parsed = Selector::parse({.mesh = word(target.mesh),
                                       .at = word(target.at),
                                       .ranks = word(target.rank),
                                       .hosts = word(target.host),
                                       .named = named_hosts_},
                                      spec_);
  if (const auto* complaint = std::get_if<Complaint>(&parsed)) return complaint->message;
  const auto gang = word(target.gang);
  if (!gang) return std::nullopt;
  const auto number = gang_word(*gang);
  if (!number) return text("`", printable(*gang), "` is not the number of a gang");
  for (const MeshSpec& mesh : spec_.meshes) {
    const bool of_mesh = !word(target.mesh) || target.mesh == mesh.name;
    if (of_mesh && *number < mesh.gangs()) return std::nullopt;
  }
  return text("there is no gang ", *number);
}

bool DrillTargets::has(const drill::FaultTarget& target, RankId rank, const std::string& host) const {
  const std::string key = text(target.mesh, '\n', target.at, '\n', target.rank, '\n', target.host);
  auto found = selectors_.find(key);
  if (found == selectors_.end()) {
    auto parsed = Selector::parse({.mesh = word(target.mesh),
                                   .at = word(target.at),
                                   .ranks = word(target.rank),
                                   .hosts = word(target.host),
                                   .named = named_hosts_},
                                  spec_);
    // One that means nobody was refused before the drill began.
    if (std::holds_alternative<Complaint>(parsed)) return false;
    found = selectors_.emplace(key, std::get<Selector>(std::move(parsed))).first;
  }
  if (!found->second.has(rank) || !found->second.has_host(host)) return false;
  const auto gang = word(target.gang);
  return !gang || gang_word(*gang) == spec_.meshes[rank.mesh.value()].gang_of(rank.rank).value();
}

}  // namespace monarch
