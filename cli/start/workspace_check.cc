#include "cli/start/workspace_check.h"

#include <utility>

#include "cli/args/say.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kNamedLeftOut = 10;

bool is_copied(const JobSpec& spec) { return !spec.launch.facts().one_machine; }

// Where a key is written, or the next one above it that is.
Place place_of_key(const YamlNode& tree, const char* key) {
  const YamlNode* workspace = value_of(&tree, "workspace");
  const YamlNode* value = value_of(workspace, key);
  if (value != nullptr) return value->place;
  const YamlKey* whole = tree.find_key("workspace");
  return whole == nullptr ? Place{} : whole->place;
}

std::vector<std::string> named(const std::vector<std::string>& left_out) {
  std::vector<std::string> notes;
  for (const std::string& each : left_out) {
    if (notes.size() == kNamedLeftOut) {
      notes.push_back(text("workspace: ", left_out.size() - kNamedLeftOut, " more are left out like this"));
      break;
    }
    notes.push_back(text("workspace: left out: ", each));
  }
  return notes;
}

}  // namespace

WorkspaceLook look_at_workspace(const JobSpec& spec, const YamlNode& tree, const std::vector<SpecText>& sources) {
  WorkspaceLook look;
  if (!spec.workspace) return look;
  Report report;
  for (const SpecText& source : sources) (void)report.add_source(source.name, source.text);
  const auto folder = open_workspace(*spec.workspace);
  if (!folder.ok()) {
    report.error("E0224", place_of_key(tree, "path"),
                 {.message = folder.error().message,
                  .label = "is no folder that can be read here",
                  .help = "a relative path is counted from the spec's folder"});
  } else if (is_copied(spec)) {
    auto scanned = scan_workspace(folder->get(), *spec.workspace);
    if (scanned.ok()) {
      look.notes = named(scanned->left_out);
      look.scanned = std::move(*scanned);
    } else if (scanned.error().code == ErrorCode::kBusy) {
      report.error("E0317", place_of_key(tree, "max_size"),
                   {.message = scanned.error().message,
                    .label = "is the limit",
                    .help = "leave them out in .monarchignore or `workspace.exclude`, or write a higher `max_size`"});
    } else {
      report.error("E0224", place_of_key(tree, "path"),
                   {.message = scanned.error().message, .label = "cannot be read here", .help = ""});
    }
  }
  look.faults = report.diagnostics();
  return look;
}

bool has_its_workspace(const WorkspaceLook& look, const std::vector<SpecText>& sources, const Terminal& terminal) {
  SpecOutcome outcome;
  outcome.diagnostics = look.faults;
  outcome.sources = sources;
  if (!look.faults.empty()) write_err(render(outcome, {.colour = terminal.err_colour}));
  for (const std::string& note : look.notes) say_note(terminal, note);
  return look.faults.empty();
}

std::string workspace_line(const JobSpec& spec, const std::optional<ScannedWorkspace>& scanned) {
  if (!spec.workspace) return "";
  const std::string where = text("workspace ", printable(spec.workspace->path));
  if (!scanned) return where + ": used in place by virtual hosts; what is edited while the job runs, it sees\n";
  return text(where, ": ", scanned->files, scanned->files == 1 ? " file, " : " files, ", amount_text(scanned->bytes),
              ", copied to each host\n");
}

}  // namespace monarch
