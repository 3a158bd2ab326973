#include "cli/drill/drill_reports.h"

#include <utility>

#include "cli/args/say.h"
#include "cli/show/drill_junit.h"
#include "cli/show/drill_text.h"
#include "cli/term/write_all.h"
#include "supervisor/drill/core/measure.h"
#include "supervisor/drill/page/page.h"
#include "supervisor/drill/report/report_json.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

Status write_into(const ArtifactFolder& folder, const std::string& name, std::string_view content) {
  MONARCH_ASSIGN(const UniqueFd file, folder.make_file(name));
  return write_all(file.get(), content, text("writing ", folder.path(), "/", name));
}

Status write_folder(const ArtifactFolder& folder, const drill::DrillRecord& record, const drill::DrillReport& report,
                    const std::string& junit) {
  MONARCH_TRY(write_into(folder, "report.json", drill::report_json(record, report)));
  MONARCH_TRY(write_into(folder, "junit.xml", junit));
  return write_into(folder, "report.html", drill::drill_page(record, report));
}

}  // namespace

std::optional<DrillPlaces> take_drill_places(const Arguments& arguments, const Context& context) {
  DrillPlaces places;
  if (const auto path = arguments.value("out")) {
    auto folder = ArtifactFolder::open(*path);
    if (!folder.ok()) {
      return refuse_value(context, text("--out ", folder.error().message), "name a new folder, or an empty one");
    }
    places.folder = std::move(*folder);
  }
  if (const auto path = arguments.value("junit")) {
    auto file = ReportFile::open(*path);
    if (!file.ok()) return refuse_value(context, text("--junit ", file.error().message));
    places.junit = std::move(*file);
  }
  return places;
}

void show_drill(const drill::DrillRecord& record, const drill::DrillReport& report, const std::string& where, bool json,
                const Context& context) {
  const Terminal& terminal = context.terminal;
  if (json) return write_out(terminal, drill::report_json(record, report));
  if (!terminal.quiet) {
    write_err(drill_table(record, report, terminal.err_colour, terminal.err_is_terminal ? terminal.columns() : 0));
  }
  write_out(terminal, text(report.sentence, where.empty() ? "" : text("; report: ", printable(where)), "\n"));
}

int leave_drill(const drill::DrillRecord& record, const DrillPlaces& places, const std::string& folder, bool json,
                const Context& context) {
  const drill::DrillReport report = drill::measure(record);
  const std::string junit = drill_junit(record, report);
  auto into = places.folder != nullptr ? Result<std::shared_ptr<const ArtifactFolder>>(places.folder)
                                       : ArtifactFolder::open(folder);
  const Status written = into.ok() ? write_folder(**into, record, report, junit) : Status(into.error());
  const Status noted = places.junit != nullptr ? write_report(places.junit, junit) : Status();
  for (const Status* const failed : {&written, &noted}) {
    if (!failed->ok()) say_error(context.terminal, {.id = "E0931", .message = failed->error().message, .help = ""});
  }
  show_drill(record, report, written.ok() ? (*into)->path() + "/report.html" : "", json, context);
  return report.exit_code == kExitOk && !(written.ok() && noted.ok()) ? kExitInternal : report.exit_code;
}

}  // namespace monarch
