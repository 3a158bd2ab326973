#include "transport/zmq/descriptor_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transport/base/log.h"

namespace monarch {

namespace {

constexpr Duration kBetweenLooks = Duration::milliseconds(500);
// After they were scarce, for a while: whoever took them comes back.
constexpr Duration kBetweenQuickLooks = Duration::milliseconds(50);
constexpr Duration kQuick = Duration::seconds(10);
constexpr std::size_t kReserve = 64;
constexpr std::size_t kReservedPart = 8;  // of a limit, at most one in so many
constexpr std::size_t kForOwn = 4;        // sockets, of what is reserved one in so many; and so many at least

DescriptorUse none_left() {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);  // cannot fail for a name that exists
  const auto full = static_cast<std::size_t>(limit.rlim_cur);
  return {.open = full, .limit = full};
}

UniqueFd spare_descriptor() { return UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)); }

}  // namespace

std::size_t DescriptorUse::reserve() const { return std::min(kReserve, limit / kReservedPart); }

bool are_scarce(const DescriptorUse& use, bool were) {
  const std::size_t enough = were ? use.reserve() + use.reserve() / 2 : use.reserve();
  return use.left() < enough;
}

std::optional<DescriptorUse> descriptor_use() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return std::nullopt;
  std::size_t open = 0;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') ++open;
  }
  (void)::closedir(folder);  // fails only for what is no folder
  return DescriptorUse{.open = open - 1, .limit = static_cast<std::size_t>(limit.rlim_cur)};  // less that of the look
}

DescriptorWatch::DescriptorWatch(EventLoop& loop, std::vector<ListenerDoor> doors, Handlers handlers)
    : loop_(loop), doors_(std::move(doors)), handlers_(std::move(handlers)), spare_(spare_descriptor()) {
  look();
}

DescriptorWatch::~DescriptorWatch() { loop_.cancel(timer_); }

void DescriptorWatch::look() {
  spare_.reset();
  const std::optional<DescriptorUse> known = descriptor_use();
  DescriptorUse use = known.value_or(none_left());
  if (known) use.open -= reserve_.size();  // what is held is left
  const bool scarce = are_scarce(use, scarce_);
  if (scarce) close_doors();
  spare_ = spare_descriptor();
  fill_reserve(use);
  if (scarce) quick_until_ = loop_.now() + kQuick;
  const Duration wait = loop_.now() < quick_until_ ? kBetweenQuickLooks : kBetweenLooks;
  timer_ = loop_.at(loop_.now() + wait, [this] { look(); });
  if (scarce == std::exchange(scarce_, scarce)) return;
  if (scarce) return handlers_.on_scarce(use);
  for (ListenerDoor& door : doors_) {
    if (const Status opened = door.open(); !opened.ok()) log_error(opened.error().message);
  }
  handlers_.on_enough(use);
}

// With the doors closed nobody else takes what is given up.
bool DescriptorWatch::make_room() {
  if (reserve_.empty()) return false;
  close_doors();
  reserve_.pop_back();
  if (!std::exchange(scarce_, true)) handlers_.on_scarce(none_left());
  return true;
}

// From what is left, and never so much that the process itself would want for one.
void DescriptorWatch::fill_reserve(const DescriptorUse& use) {
  // Less than what is kept: with all of it held, and nothing else left, none would be scarce.
  const std::size_t wanted = std::min(std::max(use.reserve() / kForOwn, kForOwn), use.reserve() / 2);
  std::size_t left = use.left() - std::min(use.left(), reserve_.size());
  for (; reserve_.size() < wanted && left > use.reserve() / 2; --left) {
    UniqueFd held = spare_descriptor();
    if (!held.valid()) return;
    reserve_.push_back(std::move(held));
  }
}

// Also those that were closed: somebody who was about to come in when they were may wait now.
void DescriptorWatch::close_doors() {
  for (ListenerDoor& door : doors_) {
    if (!scarce_) {
      if (const Status closed = door.close(); !closed.ok()) log_error(closed.error().message);
    }
    turned_away_ += door.turn_away();
  }
}

}  // namespace monarch
