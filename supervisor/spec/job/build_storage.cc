#include "supervisor/spec/job/build_storage.h"

#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

std::vector<StorageSpec> build_storage(const YamlNode& root, Report& report) {
  std::vector<StorageSpec> folders;
  const YamlNode* storage = value_of(&root, "storage");
  if (storage == nullptr || !storage->is(YamlNode::Kind::kList)) return folders;
  for (const YamlNode& item : storage->items) {
    const auto path = text_of(&item, "path");
    if (!path) continue;  // refused by the schema
    if (!path->starts_with('/')) {
      report.error("E0318", value_of(&item, "path")->place,
                   {.message = text("`storage` names ", printable(*path), ", which is another folder on each host"),
                    .label = "is not an absolute path",
                    .help = "write it from the root on, as in `/data/ckpt`"});
      continue;
    }
    folders.push_back({.path = *path, .shared = bool_or(&item, "shared", false)});
  }
  return folders;
}

}  // namespace monarch
