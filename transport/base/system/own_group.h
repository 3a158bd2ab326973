#pragma once

// Control groups, as this process finds its own: v2, or v1's of one controller.
//
// Thread: any.

#include <optional>
#include <string>
#include <string_view>

namespace monarch {

struct GroupMount {
  std::string root;   // of the hierarchy, as mounted here
  std::string point;  // where
};
// `type`: "cgroup2", or "cgroup" with the controller that is meant.
std::optional<GroupMount> find_group_mount(std::string_view type, std::string_view controller);

// Where that of this process is.
std::optional<std::string> own_group_folder(std::string_view type, std::string_view controller);

// Of a file that tells a number; nothing: it tells none, as "max", or cannot be read.
std::optional<long long> number_in_file(const std::string& path);

// A group that has as many processes as it may have.
struct FullGroup {
  std::string path;
  long long most = 0;
};
// The nearest one from this process's own upwards, of v2 or v1.
std::optional<FullGroup> own_full_group();

}  // namespace monarch
