#pragma once

// What a drill leaves when it is over: its table and last line, a page, report.json and a JUnit file.
//
// Thread: the command's; it waits for the disk.

#include <memory>
#include <optional>
#include <string>

#include "cli/args/command.h"
#include "cli/follow/report_places.h"
#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch {

struct DrillPlaces {
  std::shared_ptr<const ArtifactFolder> folder;  // null: one of the job's own
  std::shared_ptr<const ReportFile> junit;       // null: none beside that
};
// --out and --junit, before anything starts. Nothing: stderr says what is wrong.
std::optional<DrillPlaces> take_drill_places(const Arguments& arguments, const Context& context);

// The table on stderr, the last line on stdout; `where`: of the page, empty: there is none. With `json` the report.
void show_drill(const drill::DrillRecord& record, const drill::DrillReport& report, const std::string& where, bool json,
                const Context& context);

// Judges, writes all files and shows it. `folder`: where --out names none; it is new. What the command exits with.
int leave_drill(const drill::DrillRecord& record, const DrillPlaces& places, const std::string& folder, bool json,
                const Context& context);

}  // namespace monarch
