// A scenario of a drill: whatever the bytes are, read_scenario() ends in a scenario or in errors with places, which
// hold for a job, too, and what is shown of them is safe for a terminal.

#include <cstddef>
#include <cstdint>
#include <string>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/scenario/check_scenario.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/spec.h"
#include "transport/base/assert.h"

namespace {

monarch::JobSpec drilled_job() {
  const auto outcome = monarch::load_spec(
      {.name = "job.yaml",
       .text = "version: 1\njob: j\nlaunch: {local: {hosts: 5, spares: 1}}\nmeshes: {trainer: {dims: "
               "{replica: 2, host: 2}, gang: replica, program: [/bin/true]}}\n",
       .directory = "/"});
  MONARCH_ASSERT(outcome.loaded.has_value());
  return outcome.loaded->spec;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  static const JobSpec job = drilled_job();
  drill::ScenarioOutcome outcome = drill::read_scenario(
      {.name = "fuzz.yaml", .text = std::string(reinterpret_cast<const char*>(data), size), .directory = "/srv/job"},
      {.home = "/home/u"});
  MONARCH_ASSERT(outcome.scenario.has_value() == outcome.diagnostics.empty());
  drill::check_scenario(outcome, {.spec = job});
  MONARCH_ASSERT(outcome.scenario.has_value() == outcome.diagnostics.empty());
  for (const char c : drill::render(outcome)) {
    const auto byte = static_cast<unsigned char>(c);
    MONARCH_ASSERT(byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F));
  }
  for (const Diagnostic& diagnostic : outcome.diagnostics) MONARCH_ASSERT(find_error(diagnostic.id) != nullptr);
  if (!outcome.scenario) return 0;
  for (const drill::FaultEntry& entry : outcome.scenario->faults)
    MONARCH_ASSERT(drill::find_fault(entry.fault) != nullptr);
  return 0;
}
