// The spec: whatever the bytes are, load_spec() ends in a job or in errors with places, and what is shown of them is
// safe for a terminal.

#include <cstddef>
#include <cstdint>
#include <string>

#include "supervisor/spec/spec.h"
#include "transport/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const SpecSource source{
      .name = "fuzz.yaml", .text = std::string(reinterpret_cast<const char*>(data), size), .directory = "/srv/job"};
  // A file of hosts, too: its reader gets the same bytes.
  const auto read = [&](const std::string&) -> Result<std::string> { return source.text; };
  const SpecOutcome outcome = load_spec(
      source, {.home = "/home/u", .read_hosts = read, .count_gpus = [] { return 8U; }, .unbuilt = UnbuiltKeys::kTake});
  MONARCH_ASSERT(outcome.loaded.has_value() == outcome.diagnostics.empty());
  for (const char c : render(outcome)) {
    const auto byte = static_cast<unsigned char>(c);
    MONARCH_ASSERT(byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F));
  }
  for (const Diagnostic& diagnostic : outcome.diagnostics) MONARCH_ASSERT(find_error(diagnostic.id) != nullptr);
  if (outcome.loaded) {
    const JobSpec& job = outcome.loaded->spec;
    MONARCH_ASSERT(!job.meshes.empty() && job.pool_size() >= job.hosts_needed() + job.spares());
    for (const MeshSpec& mesh : job.meshes) MONARCH_ASSERT(mesh.size() % mesh.gangs() == 0 && !mesh.program.empty());
  }
  return 0;
}
