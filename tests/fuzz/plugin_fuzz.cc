// What a rank is told of its plugins, and what a plugin's file says of itself: whatever the bytes are, they are taken
// as what they are or refused, and nothing beyond their end is read.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "transport/base/assert.h"
#include "worker/rank/elf_file.h"
#include "worker/rank/rank_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const Status elf = check_elf(bytes); elf.ok())
    MONARCH_ASSERT(
        bytes.starts_with("\x7f"
                          "ELF"));
  const auto manifest = parse_rank_manifest(bytes);
  if (!manifest.ok()) {
    MONARCH_ASSERT(manifest.error().message.starts_with("MONARCH_ACTORS"));
    return 0;
  }
  MONARCH_ASSERT(!manifest->controller || manifest->actors.empty());
  for (const auto& [name, length] : manifest->dims) MONARCH_ASSERT(length > 0);
  for (const RankManifest::Part& part : manifest->actors) {
    MONARCH_ASSERT(!part.plugin.empty() && !part.entry.empty());
  }
  return 0;
}
