#include "worker/drill/targets.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "transport/base/clock.h"
#include "transport/process/job_marks.h"
#include "worker/core/strike_plan.h"

namespace monarch {

namespace {

std::vector<StrikeCandidate> candidates_of(const std::vector<ProcessEntry>& there, const std::string& uuid) {
  std::vector<pid_t> keepers;
  std::vector<StrikeCandidate> all;
  for (const ProcessEntry& entry : there) {
    const auto worker = worker_mark(entry.pid);
    if (worker && worker->uuid == uuid && worker->keeper) keepers.push_back(entry.pid);
  }
  for (const ProcessEntry& entry : there) {
    StrikeCandidate one{.pid = entry.pid};
    const auto worker = worker_mark(entry.pid);
    const bool of_keeper = std::find(keepers.begin(), keepers.end(), entry.parent) != keepers.end();
    if (worker && worker->uuid == uuid) {
      one.role = worker->keeper ? StrikeRole::kKeeper : StrikeRole::kDaemon;
    } else if (of_keeper) {
      const auto mesh = environment_value(entry.pid, "MONARCH_MESH");
      const auto rank = environment_value(entry.pid, "MONARCH_RANK");
      if (mesh && rank) {
        one.role = StrikeRole::kRank;
        one.mesh = *mesh;
        one.rank = static_cast<std::uint32_t>(std::strtoul(rank->c_str(), nullptr, 10));
        one.generation = environment_value(entry.pid, "MONARCH_GENERATION").value_or("");
        one.leads_session = entry.session == entry.pid;
        one.born = entry.start;
      }
    }
    all.push_back(std::move(one));
  }
  tell_ranks_apart(all);
  return all;
}

bool is_same_folder(const std::string& one, const std::string& other) {
  struct stat first {};
  struct stat second {};
  const auto look = [](const std::string& path, struct stat& status) {
    const UniqueFd folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return folder.valid() && ::fstat(folder.get(), &status) == 0;
  };
  return look(one, first) && look(other, second) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// The process with the number that the order names, where it decides about the order's job.
std::optional<ProcessEntry> supervisor_of(const StrikeOrder& order) {
  const auto entry = read_process(order.supervisor_pid);
  const auto directory = supervisor_mark(order.supervisor_pid);
  const bool is_it = entry && !entry->dead() && directory && is_same_folder(*directory, order.job_directory);
  return is_it ? entry : std::nullopt;
}

}  // namespace

std::vector<RankThere> ranks_among(const std::vector<ProcessEntry>& there, const std::string& job_uuid) {
  std::vector<RankThere> ranks;
  const std::vector<StrikeCandidate> candidates = candidates_of(there, job_uuid);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const StrikeCandidate& one = candidates[i];
    const bool runs = !there[i].dead() && there[i].state != 'T' && there[i].state != 't';
    if (one.role != StrikeRole::kRank || !runs) continue;
    const auto known = std::find_if(ranks.begin(), ranks.end(), [&](const RankThere& rank) {
      return rank.rank == one.rank && rank.mesh == one.mesh;
    });
    if (known == ranks.end()) {
      ranks.push_back({.mesh = one.mesh, .rank = one.rank, .processes = 1});
    } else {
      ++known->processes;
    }
  }
  return ranks;
}

Result<StrikeTargets> targets_of(const StrikeOrder& order) {
  std::vector<ProcessEntry> there;
  std::vector<StrikeCandidate> candidates;
  if (order.whom == StrikeWhom::kSupervisor) {
    if (const auto supervisor = supervisor_of(order)) {
      there.push_back(*supervisor);
      candidates.push_back({.pid = supervisor->pid, .role = StrikeRole::kSupervisor});
    }
  } else {
    there = processes_of_job({.uuid = order.job_uuid, .host = order.host});
    candidates = candidates_of(there, order.job_uuid);
  }
  MONARCH_ASSIGN(const std::vector<Blow> blows, plan_strike(order, candidates));
  StrikeTargets targets{.processes = {}, .signal = blows.front().signal};
  for (const Blow& blow : blows) {
    targets.processes.push_back(
        *std::find_if(there.begin(), there.end(), [&](const ProcessEntry& entry) { return entry.pid == blow.pid; }));
  }
  return targets;
}

std::vector<ProcessEntry> with_their_own(const std::vector<ProcessEntry>& processes) {
  return with_descendants(list_processes(), [&](const ProcessEntry& entry) {
    return !entry.dead() && std::any_of(processes.begin(), processes.end(), [&](const ProcessEntry& known) {
      return known.pid == entry.pid && known.start == entry.start;
    });
  });
}

bool is_stopped(const ProcessEntry& known) {
  const auto now = read_process(known.pid);
  return now && now->start == known.start && (now->state == 'T' || now->state == 't');
}

bool is_gone(const ProcessEntry& known) {
  const auto now = read_process(known.pid);
  return !now || now->start != known.start || now->dead();
}

bool until(const std::function<bool()>& holds, Duration patience, Duration look) {
  for (const Instant end = boot_now() + patience; !holds();) {
    if (boot_now() >= end) return false;
    (void)::poll(nullptr, 0, static_cast<int>(look.count_milliseconds()));
  }
  return true;
}

}  // namespace monarch
