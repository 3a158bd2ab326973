#pragma once

// report.json: the report of a drill for programs, and the record that it was measured from, so that it can be measured
// again, with other bounds too. Keys are added, never changed.
//
// Thread: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"
#include "transport/base/result.h"

namespace monarch::drill {

inline constexpr std::size_t kMostReportBytes = std::size_t{64} << 20U;

// {"v":1,"type":"drill","verdict":"passed",…}
std::string report_json(const DrillRecord& record, const DrillReport& report);

// kInvalid: it is no such text, it is cut short, it is of another version, or something in it is not what it should be;
// the message says where.
Result<DrillRecord> read_record(std::string_view json);

}  // namespace monarch::drill
