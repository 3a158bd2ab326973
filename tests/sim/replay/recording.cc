#include "tests/sim/replay/recording.h"

#include <algorithm>
#include <string_view>

#include "supervisor/core/job/roster.h"
#include "supervisor/core/job/status.h"
#include "supervisor/core/job/vault_table.h"
#include "tests/sim/replay/action_words.h"
#include "tests/sim/replay/spec_fields.h"
#include "transport/base/text.h"

namespace monarch::sim {

MONARCH_FIELDS(Recording, seed, spec, actions, steps)

namespace {

constexpr std::string_view kFormat = "monarch-sim recording 1\n";
constexpr std::uint16_t kPostPort = 7'001;  // of every host: the simulated ones have no post and no vault
constexpr std::uint16_t kVaultPort = 8'001;

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x0000'0100'0000'01B3U;
  return hash;
}

std::uint64_t roster_hash(const JobCore& core) {
  const std::vector<PostPlace> posts(core.hosts().size(), PostPlace{.port = kPostPort, .without = {}});
  return fnv1a(encode_payload(make_roster({.spec = core.spec(),
                                           .state = core.state(),
                                           .placement = core.placement(),
                                           .pool = core.hosts(),
                                           .posts = posts,
                                           .failures = {}})));
}

std::uint64_t vaults_hash(const JobCore& core) {
  const std::vector<std::uint16_t> ports(core.hosts().size(), kVaultPort);
  const VaultView view{
      .spec = core.spec(), .state = core.state(), .placement = core.placement(), .pool = core.hosts(), .ports = ports};
  return fnv1a(encode_payload(common_vault_table(view)) + encode_payload(own_vault_gangs(view)) +
               encode_payload(vault_places(view)));
}

std::uint64_t outstanding_hash(const JobCore& core) {
  std::string all;
  for (std::uint32_t i = 0; i < core.hosts().size(); ++i) {
    for (const std::string& encoding : encodings_of(core.outstanding(HostId(i), {}))) all += encoding;
  }
  return fnv1a(all);
}

}  // namespace

Shown shown_by(const JobCore& core, Instant now) {
  return {.status = fnv1a(encode_payload(status_of(core, core_options().job_id, now))),
          .roster = roster_hash(core),
          .vaults = vaults_hash(core),
          .outstanding = outstanding_hash(core),
          .deadline = core.next_deadline()};
}

std::vector<std::string> encodings_of(const std::vector<Action>& actions) {
  std::vector<std::string> encodings;
  encodings.reserve(actions.size());
  for (const Action& action : actions) encodings.push_back(encode_action(action));
  std::sort(encodings.begin(), encodings.end());
  return encodings;
}

JobCoreOptions core_options() { return {.job_id = "sim-0000", .log_directory = "/logs"}; }

std::string encode_recording(const Recording& recording) { return std::string(kFormat) + encode_payload(recording); }

Result<Recording> decode_recording(const std::string& bytes) {
  if (!bytes.starts_with(kFormat)) {
    return Error{ErrorCode::kInvalid, text("it does not begin with '", kFormat.substr(0, kFormat.size() - 1), "'")};
  }
  return decode_payload<Recording>(std::string_view(bytes).substr(kFormat.size()), bytes.size());
}

}  // namespace monarch::sim
