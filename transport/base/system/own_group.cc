#include "transport/base/system/own_group.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> parts;
  for (std::string part; in >> part;) parts.push_back(part);
  return parts;
}

// The path of /proc/self/cgroup's line for the controller, or of the v2 line for "".
std::optional<std::string> own_path(std::string_view controller) {
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool matches = controller.empty()
                             ? controllers.empty()
                             : text(',', controllers, ',').find(text(',', controller, ',')) != std::string::npos;
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

}  // namespace

// proc_pid_mountinfo(5): id parent major:minor root point options fields… - type source superoptions
std::optional<GroupMount> find_group_mount(std::string_view type, std::string_view controller) {
  std::ifstream lines("/proc/self/mountinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto left = words_of(line.substr(0, dash));
    const auto right = words_of(line.substr(dash + 3));
    if (left.size() < 5 || right.size() < 3 || right[0] != type) continue;
    const std::string options = text(',', right[2], ',');
    if (!controller.empty() && options.find(text(',', controller, ',')) == std::string::npos) continue;
    return GroupMount{left[3], left[4]};
  }
  return std::nullopt;
}

std::optional<std::string> own_group_folder(std::string_view type, std::string_view controller) {
  const auto mount = find_group_mount(type, controller);
  const auto path = own_path(controller);
  if (!mount || !path) return std::nullopt;
  std::string below = *path;
  if (mount->root != "/" && below.starts_with(mount->root)) below.erase(0, mount->root.size());
  return below == "/" ? mount->point : mount->point + below;
}

std::optional<long long> number_in_file(const std::string& path) {
  std::ifstream file(path);
  std::string content;
  std::getline(file, content);
  long long value = 0;
  const auto parsed = std::from_chars(content.data(), content.data() + content.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<FullGroup> own_full_group() {
  for (const auto& [type, controller] : {std::pair("cgroup2", ""), std::pair("cgroup", "pids")}) {
    for (auto path = own_group_folder(type, controller); path && path->size() > 1; path->erase(path->rfind('/'))) {
      const auto most = number_in_file(*path + "/pids.max");
      const auto now = number_in_file(*path + "/pids.current");
      if (most && now && *now >= *most) return FullGroup{*path, *most};
      if (path->rfind('/') == std::string::npos) break;
    }
  }
  return std::nullopt;
}

}  // namespace monarch
