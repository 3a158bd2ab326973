#pragma once

// RunReports: what `run` and `attach` leave for programs when a job has ended: a JUnit file, a folder of artifacts, and
// an exit code by class. Where nothing could be written is refused before anything starts.
//
// Thread: the command's; it waits for the disk.

#include <memory>
#include <optional>
#include <vector>

#include "cli/args/command.h"
#include "cli/follow/report_places.h"
#include "cli/follow/viewer_session.h"
#include "supervisor/client/job_view.h"
#include "supervisor/core/spec/job_spec.h"

namespace monarch {

// --exit-code: also of `wait`.
Flag exit_code_flag();
// Nothing: stderr says what is wrong.
std::optional<bool> exit_code_by_class(const Arguments& arguments, const Context& context);
// 1 for every failure of a rank; other codes as they are.
int class_of(const Verdict& verdict);

// --junit, --artifacts and --exit-code.
std::vector<Flag> report_flags();

struct RunReports {
  std::shared_ptr<const ReportFile> junit;          // null: none
  std::shared_ptr<const ArtifactFolder> artifacts;  // null: none
  bool by_class = false;
};
// Nothing: stderr says what is wrong.
std::optional<RunReports> take_reports(const Arguments& arguments, const Context& context);

// At the end of a session: writes what is asked for if the job has ended, and says what the command exits with.
int leave_reports(const RunReports& reports, const JobView& job, const JobSpec& spec, const SessionEnd& end,
                  const Context& context);

}  // namespace monarch
