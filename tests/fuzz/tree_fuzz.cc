// A tree's manifest of a stranger's: what is parsed is written again as the same bytes, and names nothing outside of
// its tree.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "transport/base/assert.h"
#include "transport/base/files/tree_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto manifest = parse_manifest(bytes);
  if (!manifest.ok()) return 0;
  MONARCH_ASSERT(encode_manifest(*manifest) == bytes);
  for (const TreeEntry& entry : manifest->entries) {
    MONARCH_ASSERT(objection_to_path(entry.path).empty());
    MONARCH_ASSERT(entry.path.find("..") != 0 || entry.path.size() > 2);
  }
  std::uint64_t offset = 0;
  for (const TreeBlob& blob : blobs_of(*manifest)) {
    MONARCH_ASSERT(blob.offset == offset);
    offset += blob.size;
  }
  return 0;
}
