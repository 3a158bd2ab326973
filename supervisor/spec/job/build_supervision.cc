#include "supervisor/spec/job/build_supervision.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "supervisor/spec/job/build_hang.h"
#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::optional<std::uint32_t> budget(const YamlNode* map, std::optional<std::uint32_t> fallback) {
  if (value_of(map, "max") == nullptr) return fallback;
  if (text_of(map, "max") == "unlimited") return std::nullopt;
  const auto written = integer_of(map, "max");
  return written ? written : fallback;
}

struct Timed {
  std::string_view key;
  Duration value;
};

const YamlKey* written_key(const YamlNode* map, std::string_view key) {
  return map == nullptr ? nullptr : map->find_key(key);
}

// A time above `least` that a person would choose: a whole number of seconds where it is long.
Duration rounded_up(Duration least) {
  const std::int64_t step = least >= Duration::seconds(10) ? 1'000'000'000 : 1'000'000;
  return Duration::nanoseconds((least.count_nanoseconds() + step - 1) / step * step);
}

// The same times with the later ones raised as far as the earlier ones ask for.
std::array<Timed, 4> raised(std::array<Timed, 4> times) {
  const Duration heartbeat = times[0].value;
  if (times[1].value <= heartbeat) times[1].value = heartbeat * 3;
  if (times[2].value < heartbeat * 2) times[2].value = rounded_up(heartbeat * 2);
  for (std::size_t i = 2; i < times.size(); ++i) {
    if (times[i].value <= times[i - 1].value) times[i].value = rounded_up(times[i - 1].value + heartbeat);
  }
  if (times[3].value < heartbeat * 3) times[3].value = heartbeat * 3;
  return times;
}

void check_order(const Supervision& s, const YamlNode* node, const std::string& path, Report& report) {
  const std::array<Timed, 4> times = {{{"heartbeat", s.heartbeat},
                                       {"suspect_after", s.suspect_after},
                                       {"lost_after", s.lost_after},
                                       {"lease", s.lease}}};
  const bool any =
      std::any_of(times.begin(), times.end(), [&](const Timed& t) { return written_key(node, t.key) != nullptr; });
  if (!any) return;
  std::size_t bad = 0;
  while (bad + 1 < times.size() && times[bad].value < times[bad + 1].value) ++bad;
  const bool ordered = bad + 1 == times.size();
  const bool short_lease = s.lease < s.heartbeat * 3;
  if (ordered && !short_lease && s.lost_after >= s.heartbeat * 2) return;
  const std::array<Timed, 4> better = raised(times);
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (better[i].value != times[i].value)
      changes.push_back(text("`", times[i].key, ": ", write_duration(better[i].value), "`"));
  }
  const std::string help = text(join(changes, " and "), " would work");
  // At the pair's written key, or at any that is written: it made the pair what it is.
  const std::size_t first = ordered ? 0 : bad;
  const std::size_t second = !ordered ? bad + 1 : short_lease ? 3 : 2;
  const YamlKey* key = written_key(node, times[second].key);
  if (key == nullptr) key = written_key(node, times[first].key);
  for (const Timed& time : times) {
    if (key == nullptr) key = written_key(node, time.key);
  }
  const auto told = [&](const Timed& time) {
    return text("`", time.key, "` (", write_duration(time.value),
                written_key(node, time.key) == nullptr ? ", not written here)" : ")");
  };
  if (!ordered) {
    report.error(
        "E0301", key->place,
        {.message = text("in `", path, "`, ", told(times[first]), " is not shorter than ", told(times[second])),
         .label = "heartbeat < suspect_after < lost_after < lease must hold",
         .help = help});
  } else if (short_lease) {
    report.error("E0302", key->place,
                 {.message = text("in `", path, "`, ", told(times[3]), " is shorter than three heartbeats of ",
                                  write_duration(s.heartbeat)),
                  .label = "one lost packet would freeze healthy ranks",
                  .help = help});
  } else {
    report.error("E0321", key->place,
                 {.message = text("in `", path, "`, ", told(times[2]), " is shorter than two heartbeats of ",
                                  write_duration(s.heartbeat)),
                  .label = "one late heartbeat would cost a host",
                  .help = help});
  }
}

// Seconds that `attempts` restarts wait in all, at the most: the first is immediate, then the back-off doubles.
double longest_wait(const RestartPolicy& policy, std::uint32_t attempts) {
  double total = 0;
  double wait = policy.backoff.count_seconds();
  const double most = policy.backoff_max.count_seconds();
  for (std::uint32_t i = 1; i < attempts; ++i) {
    if (wait >= most || wait == 0) {
      total += std::min(wait, most) * static_cast<double>(attempts - i);
      break;
    }
    total += wait;
    wait *= 2;
  }
  return total * (1 + policy.jitter);
}

std::uint32_t most_that_fit(const RestartPolicy& policy) {
  std::uint32_t low = 0;
  std::uint32_t high = *policy.max;
  while (low < high) {
    const std::uint32_t middle = low + (high - low + 1) / 2;
    if (longest_wait(policy, middle) <= policy.window.count_seconds()) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

bool check_backoff(const RestartPolicy& policy, const YamlNode* node, const std::string& path, Report& report) {
  const YamlKey* key = written_key(node, "backoff");
  if (key == nullptr) key = written_key(node, "backoff_max");
  if (key == nullptr || policy.backoff <= policy.backoff_max) return true;
  report.error("E0322", key->place,
               {.message = text("in `", path, ".restart`, `backoff` (", write_duration(policy.backoff),
                                ") is longer than `backoff_max` (", write_duration(policy.backoff_max), ")"),
                .label = "backoff <= backoff_max must hold",
                .help = text("`backoff_max: ", write_duration(policy.backoff),
                             "` would work, and so would `backoff: ", write_duration(policy.backoff_max), "`")});
  return false;
}

// One lost host after another: each is given up, and replaced at the end of its lease.
void check_reallocate(const Supervision& s, const YamlNode* node, const std::string& path, Report& report) {
  const YamlKey* key = written_key(node, "window");
  if (key == nullptr) key = written_key(node, "max");
  const std::optional<std::uint32_t> max = s.reallocate.max;
  if (key == nullptr || !max || *max == 0) return;
  const Duration window = s.reallocate.window;
  const std::int64_t fit = window.count_nanoseconds() / s.lease.count_nanoseconds();
  if (*max <= fit) return;
  constexpr std::int64_t kMostLeases = 1'000;  // nobody would want a longer window
  std::string help = text("`max: ", fit, "` would work");
  if (*max <= kMostLeases) {
    help = text("`window: ", write_duration(rounded_up(s.lease * *max)), "` would work, and so would `max: ", fit, "`");
  }
  report.error("E0323", key->place,
               {.message = text("in `", path, ".reallocate`, ", *max, " replacements of hosts, each after a lease of ",
                                write_duration(s.lease), ", do not fit into the window of ", write_duration(window)),
                .label = "old ones would be forgotten before the last",
                .help = std::move(help)});
}

void check_restart(const RestartPolicy& policy, const YamlNode* node, const std::string& path, Report& report) {
  if (!check_backoff(policy, node, path, report)) return;
  const YamlKey* key = nullptr;
  for (const std::string_view candidate : {"window", "max", "backoff", "backoff_max", "jitter"}) {
    if (key == nullptr) key = written_key(node, candidate);
  }
  if (key == nullptr || !policy.max) return;
  const double needed = longest_wait(policy, *policy.max);
  if (needed <= policy.window.count_seconds()) return;
  constexpr double kLongestSuggested = 7 * 86'400.0;
  std::string help = text("`max: ", most_that_fit(policy), "` would work");
  if (needed < kLongestSuggested) {
    const Duration window = Duration::seconds(static_cast<std::int64_t>(std::ceil(needed)));
    help = text("`window: ", write_duration(window), "` would work, and so would `max: ", most_that_fit(policy), "`");
  }
  report.error(
      "E0303", key->place,
      {.message = text("in `", path, ".restart`, ", *policy.max,
                       " restarts with their back-off do not fit into the window of ", write_duration(policy.window)),
       .label = "old failures would be forgotten before the last restart",
       .help = std::move(help)});
}

void check_orphan(const Supervision& s, const YamlNode* node, const std::string& path, Report& report) {
  const YamlNode* reallocate = value_of(node, "reallocate");
  const YamlNode* orphan = value_of(node, "orphan");
  const YamlKey* max = written_key(reallocate, "max");
  if (s.orphan != OrphanPolicy::kRun || s.reallocate.max == 0U || (orphan == nullptr && max == nullptr)) return;
  report.error("E0305", orphan != nullptr ? orphan->place : max->place,
               {.message = text("in `", path, "`, `orphan: run` needs `reallocate: {max: 0}`"),
                .label = "a replaced host's ranks would run twice",
                .help = "`reallocate: {max: 0}` would work, and so would `orphan: hold`"});
}

int peer_signal(const YamlNode* map, int fallback) {
  const auto word = text_of(map, "signal");
  if (word == "HUP") return SIGHUP;
  if (word == "USR1") return SIGUSR1;
  if (word == "USR2") return SIGUSR2;
  if (word == "WINCH") return SIGWINCH;
  return fallback;
}

OrphanPolicy orphan_of(const YamlNode* node, OrphanPolicy fallback) {
  const auto word = text_of(node, "orphan");
  if (word == "hold") return OrphanPolicy::kHold;
  if (word == "stop") return OrphanPolicy::kStop;
  if (word == "run") return OrphanPolicy::kRun;
  return fallback;
}

}  // namespace

Supervision build_supervision(const YamlNode* node, const Supervision& base) {
  Supervision s = base;
  s.heartbeat = duration_or(node, "heartbeat", base.heartbeat);
  s.suspect_after = duration_or(node, "suspect_after", base.suspect_after);
  s.lost_after = duration_or(node, "lost_after", base.lost_after);
  s.lease = duration_or(node, "lease", base.lease);
  s.hang = build_hang(value_of(node, "hang"), base.hang);
  const YamlNode* restart = value_of(node, "restart");
  s.restart.max = budget(restart, base.restart.max);
  s.restart.window = duration_or(restart, "window", base.restart.window);
  s.restart.backoff = duration_or(restart, "backoff", base.restart.backoff);
  s.restart.backoff_max = duration_or(restart, "backoff_max", base.restart.backoff_max);
  s.restart.jitter = number_or(restart, "jitter", base.restart.jitter);
  const YamlNode* reallocate = value_of(node, "reallocate");
  s.reallocate.max = budget(reallocate, base.reallocate.max);
  s.reallocate.window = duration_or(reallocate, "window", base.reallocate.window);
  const YamlNode* codes = value_of(node, "fatal_exit_codes");
  if (codes != nullptr && codes->is(YamlNode::Kind::kList)) {
    s.fatal_exit_codes.clear();
    for (const YamlNode& code : codes->items) {
      s.fatal_exit_codes.push_back(static_cast<int>(parse_integer(code).value.value_or(1)));
    }
  }
  s.on_peer_lost = peer_signal(value_of(node, "on_peer_lost"), base.on_peer_lost);
  s.orphan = orphan_of(node, base.orphan);
  s.orphan_ttl = duration_or(node, "orphan_ttl", base.orphan_ttl);
  return s;
}

void check_supervision(const Supervision& supervision, const YamlNode* node, const std::string& path, Report& report) {
  if (node == nullptr || !node->is(YamlNode::Kind::kMap)) return;
  check_order(supervision, node, path, report);
  check_restart(supervision.restart, value_of(node, "restart"), path, report);
  check_reallocate(supervision, value_of(node, "reallocate"), path, report);
  check_orphan(supervision, node, path, report);
}

}  // namespace monarch
