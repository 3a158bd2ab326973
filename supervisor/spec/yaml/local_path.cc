#include "supervisor/spec/yaml/local_path.h"

#include <algorithm>
#include <filesystem>

#include "transport/base/text.h"

namespace monarch {

std::optional<std::string> local_path(const YamlNode& node, const std::string& key, const PathBases& bases,
                                      Report& report) {
  const std::string& written = node.text;
  const std::size_t slash = std::min(written.find('/'), written.size());
  if (written.starts_with('~') && slash == 1) {
    return bases.home.empty()
               ? written
               : (std::filesystem::path(bases.home) / written.substr(std::min<std::size_t>(2, written.size())))
                     .lexically_normal()
                     .string();
  }
  if (written.starts_with('~') || written.starts_with('$')) {
    report.error("E0220", node.place,
                 {.message = text("`", key, "` starts with `", written.substr(0, slash), "`"),
                  .label = "is not expanded",
                  .help = "write the whole path, one below `~/`, or one relative to the spec's folder"});
    return std::nullopt;
  }
  return (std::filesystem::path(bases.directory) / written).lexically_normal().string();
}

}  // namespace monarch
