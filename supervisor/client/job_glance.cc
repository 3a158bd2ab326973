#include "supervisor/client/job_glance.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace monarch {

namespace {

constexpr char kSeenFile[] = "elsewhere.seen.json";
constexpr std::size_t kSeenBytes = 4096;
constexpr std::size_t kPhaseNameBytes = 32;

}  // namespace

Json glance_json(const JobGlance& glance) {
  Json exit_code;
  if (glance.exit_code) exit_code = *glance.exit_code;
  return Json::object({{"v", 1},
                       {"life", glance.life},
                       {"phase", glance.phase},
                       {"exit_code", std::move(exit_code)},
                       {"running", glance.running}});
}

JobGlance glance_of(const Json& json) {
  constexpr std::array<std::string_view, 4> kLives = {"", "live", "abandoned", "ended"};
  JobGlance glance{.life = json.get_string("life").value_or(""), .phase = json.get_string("phase").value_or("")};
  if (std::find(kLives.begin(), kLives.end(), glance.life) == kLives.end()) glance.life.clear();
  // It is shown in a table: a word, whoever says it.
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == ' '; };
  if (glance.phase.size() > kPhaseNameBytes || !std::all_of(glance.phase.begin(), glance.phase.end(), is_letter)) {
    glance.phase.clear();
  }
  glance.exit_code = json.get_int64("exit_code");
  glance.running = json.get_uint64("running").value_or(0);
  return glance;
}

std::optional<SeenJob> read_glance(const SecureDirectory& job) {
  const auto text = job.read_file(kSeenFile, kSeenBytes);
  if (!text.ok()) return std::nullopt;
  const auto json = parse_json(*text);
  struct stat what {};
  if (!json.ok() || !json->is_object() || ::fstatat(job.fd(), kSeenFile, &what, AT_SYMLINK_NOFOLLOW) != 0) return {};
  return SeenJob{.glance = glance_of(*json),
                 .at = {static_cast<std::int64_t>(what.st_mtim.tv_sec) * 1'000'000'000 + what.st_mtim.tv_nsec}};
}

Status write_glance(const SecureDirectory& job, const JobGlance& glance) {
  return job.write_file(kSeenFile, to_json(glance_json(glance)) + "\n");
}

}  // namespace monarch
