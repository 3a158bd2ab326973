#include "transport/process/containment.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <set>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/spawn.h"

namespace monarch {

namespace {

constexpr int kScanRounds = 16;  // each finds only what was forked during the one before

std::string job_folder_name(const ContainmentOptions& options) { return text("monarch-", options.job); }

// Waits, at most until `deadline`, until they have ended; before that, signals them unless `signal` is 0.
void await(const std::vector<ProcessEntry>& entries, int signal, Instant deadline) {
  std::vector<UniqueFd> pidfds;
  std::vector<pollfd> polled;
  for (const ProcessEntry& entry : entries) {
    UniqueFd pidfd = open_process(entry);
    if (!pidfd.valid()) continue;
    (void)send_signal(pidfd.get(), signal);  // one that has ended meanwhile is what was wanted
    polled.push_back({pidfd.get(), POLLIN, 0});
    pidfds.push_back(std::move(pidfd));
  }
  while (!polled.empty()) {
    const Duration left = deadline - boot_now();
    if (left <= Duration::zero()) return;
    (void)::poll(polled.data(), polled.size(), static_cast<int>(left.count_milliseconds()) + 1);
    std::erase_if(polled, [](const pollfd& p) { return p.revents != 0; });
  }
}

}  // namespace

Containment::Containment(const ContainmentOptions& options, CgroupUse use)
    : options_(options), oom_kills_told_(own_oom_kills().value_or(0)) {
  if (use == CgroupUse::kNever) {
    why_not_ = "told not to use it";
  } else if (const auto made = make_folders(); !made) {
    why_not_ = made.error().message;
    host_folder_.reset();
  }
}

Status Containment::make_folders() {
  MONARCH_ASSIGN(own_folder_, CgroupFolder::own());
  MONARCH_ASSIGN(job_folder_, own_folder_->make(job_folder_name(options_)));
  Error refusal{ErrorCode::kUnsupported, "a child cannot be moved into a cgroup of its own"};
  if (auto host = job_folder_->make(options_.host); host) {
    host_folder_ = std::move(host).value();
    if (host_folder_->can_be_joined()) return {};
    job_folder_->remove(options_.host);
  } else {
    refusal = std::move(host).error();
  }
  if (job_folder_->names().empty()) own_folder_->remove(job_folder_name(options_));
  return refusal;
}

Containment::~Containment() {
  if (!host_folder_) return;
  for (auto& [key, tree] : trees_) host_folder_->remove(key);
  job_folder_->remove(options_.host);
  // Another virtual host of the job may still have its folder in it: then this one stays, and that one removes it.
  if (job_folder_->names().empty()) own_folder_->remove(job_folder_name(options_));
}

Result<std::unique_ptr<CgroupFolder>> Containment::prepare(const std::string& key) {
  std::unique_ptr<CgroupFolder> group;
  if (host_folder_) {
    auto made = host_folder_->make(key);
    // An earlier keeper of this host has removed the folder that both had, as it ended.
    if (!made && made.error().code == ErrorCode::kNotFound && make_folders()) made = host_folder_->make(key);
    if (!made) return std::move(made).error();
    group = std::move(made).value();
  }
  trees_.insert_or_assign(key, Tree{.grouped = group != nullptr});
  return group;
}

std::unique_ptr<CgroupFolder> Containment::group_of(const std::string& key) const {
  const auto tree = trees_.find(key);
  if (tree == trees_.end() || !tree->second.grouped) return nullptr;
  auto group = host_folder_->open(key);
  return group ? std::move(group).value() : nullptr;
}

void Containment::set_leader(const std::string& key, pid_t leader) {
  if (const auto tree = trees_.find(key); tree != trees_.end()) tree->second.leader = leader;
}

std::vector<ProcessEntry> Containment::members(const std::string& key) const {
  std::vector<std::string> lines = options_.host_lines;
  lines.push_back(text(options_.rank_variable, '=', key));
  const auto tree = trees_.find(key);
  const pid_t leader = tree == trees_.end() ? 0 : tree->second.leader;
  // The leader's number is its group's and session's, and nobody else's: it is not reaped before the tree is empty.
  return with_descendants(list_processes(), [&](const ProcessEntry& entry) {
    if (leader != 0 && (entry.pid == leader || entry.session == leader)) return true;
    return !entry.dead() && environment_contains(entry.pid, lines);
  });
}

void Containment::signal_members(const std::string& key, int signal) {
  std::set<std::pair<pid_t, unsigned long long>> signalled;
  for (int round = 0; round < kScanRounds; ++round) {
    bool found = false;
    for (const ProcessEntry& entry : members(key)) {
      if (!signalled.insert({entry.pid, entry.start}).second) continue;
      const UniqueFd pidfd = open_process(entry);
      if (!pidfd.valid()) continue;
      (void)send_signal(pidfd.get(), signal);  // fails if it has ended, which is as good
      found = true;
    }
    if (!found) return;
  }
}

void Containment::kill(const std::string& key) {
  if (const auto group = group_of(key); group && group->kill().ok()) return;
  signal_members(key, SIGKILL);
}

bool Containment::freeze(const std::string& key) {
  if (const auto group = group_of(key); group && group->freeze(true).ok()) return false;
  signal_members(key, SIGSTOP);
  return true;
}

bool Containment::thaw(const std::string& key) {
  if (const auto group = group_of(key); group && group->freeze(false).ok()) return false;
  signal_members(key, SIGCONT);
  return true;
}

bool Containment::empty(const std::string& key) {
  const auto tree = trees_.find(key);
  if (tree == trees_.end()) return true;
  if (!tree->second.grouped) return members(key).empty();
  const auto group = host_folder_->open(key);
  if (!group) return group.error().code == ErrorCode::kNotFound;  // somebody has removed it, or nobody can tell now
  return !group.value()->populated();
}

bool Containment::frozen(const std::string& key) const {
  const auto group = group_of(key);
  return group && group->frozen();
}

void Containment::remove(const std::string& key) {
  const auto tree = trees_.find(key);
  if (tree == trees_.end()) return;
  trees_.erase(tree);
  if (host_folder_) host_folder_->remove(key);
}

bool Containment::out_of_memory(const std::string& key) {
  if (const auto group = group_of(key)) {
    if (const auto count = group->oom_kills()) return *count > 0;
  }
  const auto count = own_oom_kills();
  if (!count || *count <= oom_kills_told_) return false;
  ++oom_kills_told_;  // each explains one death
  return true;
}

bool sweep_groups(const ContainmentOptions& options) {
  const auto own = CgroupFolder::own();
  if (!own) return true;
  const auto job = own.value()->open(job_folder_name(options));
  if (!job) return true;
  if (const auto host = job.value()->open(options.host)) {
    (void)host.value()->kill();  // where the kernel has no such file, what is left there stays populated, and is told
    if (host.value()->populated()) return false;
    job.value()->remove(options.host);
  }
  if (job.value()->names().empty()) own.value()->remove(job_folder_name(options));
  return true;
}

namespace {

constexpr int kDeepestGroup = 16;  // systemd nests some six

using FoundGroup = std::function<void(const CgroupFolder& parent, const CgroupFolder& group)>;

void find_groups(const CgroupFolder& folder, const std::string& name, int depth, const FoundGroup& found) {
  for (const std::string& child : folder.names()) {
    const auto below = folder.open(child);
    if (!below) continue;  // gone meanwhile, or not for us
    if (child == name) {
      found(folder, *below.value());
    } else if (depth < kDeepestGroup) {
      find_groups(*below.value(), name, depth + 1, found);
    }
  }
}

void find_job_groups(const std::string& job, const FoundGroup& found) {
  const auto top = CgroupFolder::top();
  if (top) find_groups(*top.value(), job_folder_name({.job = job}), 0, found);
}

}  // namespace

std::size_t count_job_groups(const std::string& job, const std::string& host) {
  std::size_t count = 0;
  find_job_groups(job, [&](const CgroupFolder&, const CgroupFolder& group) {
    for (const std::string& name : group.names()) count += host.empty() || name == host ? 1U : 0U;
  });
  return count;
}

std::size_t remove_job_groups(const std::string& job, Duration patience, const std::string& of_host) {
  const Instant deadline = boot_now() + patience;
  std::size_t count = 0;
  find_job_groups(job, [&](const CgroupFolder& parent, const CgroupFolder& group) {
    for (const std::string& host : group.names()) {
      if (!of_host.empty() && host != of_host) continue;
      const auto folder = group.open(host);
      if (!folder) continue;
      (void)folder.value()->kill();  // where the kernel has no such file, what is left there stays populated
      while (folder.value()->populated() && boot_now() < deadline) {
        pause_between_looks();
      }
      group.remove(host);
      count += group.open(host) ? 0U : 1U;
    }
    if (group.names().empty()) parent.remove(job_folder_name({.job = job}));
  });
  return count;
}

std::size_t kill_everything(const ContainmentOptions& options, CgroupUse use, Duration patience) {
  const Instant deadline = boot_now() + patience;
  std::unique_ptr<CgroupFolder> own;
  std::unique_ptr<CgroupFolder> job;
  std::unique_ptr<CgroupFolder> host;
  if (use == CgroupUse::kIfWritable) {
    if (auto found = CgroupFolder::own()) own = std::move(found).value();
    if (own) {
      if (auto found = own->open(job_folder_name(options))) job = std::move(found).value();
    }
    if (job) {
      if (auto found = job->open(options.host)) host = std::move(found).value();
    }
  }
  for (;;) {
    if (host) (void)host->kill();  // the environments below find what it does not
    auto left = with_descendants(list_processes(), [&options](const ProcessEntry& entry) {
      return !entry.dead() && environment_contains(entry.pid, options.host_lines);
    });
    std::erase_if(left, [](const ProcessEntry& entry) { return entry.pid == ::getpid(); });
    const bool empty = left.empty() && (!host || !host->populated());
    if (empty) break;
    if (boot_now() >= deadline) return std::max<std::size_t>(left.size(), 1);
    await(left, SIGKILL, deadline);
    if (left.empty()) pause_between_looks();
  }
  if (job) {
    job->remove(options.host);
    if (job->names().empty()) own->remove(job_folder_name(options));
  }
  return 0;
}

std::size_t kill_descendants(Duration grace, Duration patience, const std::vector<pid_t>& spared) {
  const Instant killed_at = boot_now() + grace;
  const Instant deadline = killed_at + patience;
  for (;;) {
    pid_t reaped = 0;
    do reaped = ::waitpid(-1, nullptr, WNOHANG);
    while (reaped > 0);
    if (reaped < 0 && errno == ECHILD) return 0;  // a subreaper without children has no descendants
    const pid_t self = ::getpid();
    const auto left = with_descendants(list_processes(), [self, &spared](const ProcessEntry& entry) {
      return entry.parent == self && std::find(spared.begin(), spared.end(), entry.pid) == spared.end();
    });
    if (left.empty() || boot_now() >= deadline) return left.size();
    if (boot_now() < killed_at) {
      await(left, 0, killed_at);
    } else {
      await(left, SIGKILL, deadline);
    }
  }
}

std::size_t kill_descendants_but(pid_t spared, Duration patience) {
  const Instant deadline = boot_now() + patience;
  const pid_t self = ::getpid();
  for (;;) {
    const std::vector<pid_t> children = children_of(self);
    if (std::all_of(children.begin(), children.end(), [spared](pid_t child) { return child == spared; })) return 0;
    const auto left = with_descendants(list_processes(), [self, spared](const ProcessEntry& entry) {
      return entry.parent == self && entry.pid != spared && !entry.dead();
    });
    if (left.empty() || boot_now() >= deadline) return left.size();
    await(left, SIGKILL, deadline);
  }
}

}  // namespace monarch
