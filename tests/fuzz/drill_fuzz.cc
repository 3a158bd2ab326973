// A report of a drill, as anybody may hand one in to be measured again: reading it ends, and what was read is measured,
// written and read again with the same verdict.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "supervisor/drill/core/measure.h"
#include "supervisor/drill/report/report_json.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch::drill;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto record = read_record(input);
  if (!record.ok()) {
    MONARCH_ASSERT(monarch::printable(record.error().message) == record.error().message);
    return 0;
  }
  const DrillReport report = measure(*record);
  MONARCH_ASSERT(monarch::printable(report.sentence) == report.sentence);
  MONARCH_ASSERT(report.faults.size() == record->blows.size());
  const auto again = read_record(report_json(*record, report));
  MONARCH_ASSERT_BECAUSE(again.ok(), "what was written is read");
  MONARCH_ASSERT(measure(*again).exit_code == report.exit_code);
  return 0;
}
