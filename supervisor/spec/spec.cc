#include "supervisor/spec/spec.h"

#include <string_view>
#include <utility>

#include "supervisor/spec/build.h"
#include "supervisor/spec/check.h"
#include "supervisor/spec/source_text.h"
#include "supervisor/spec/yaml.h"

namespace monarch {

SpecOutcome load_spec(const SpecSource& source) {
  const std::string_view text = without_byte_order_mark(source.text);
  Report report(source.name, text);
  SpecOutcome outcome;
  const std::optional<YamlNode> root = read_yaml(text, report);
  if (root) {
    check_against_schema(*root, report);
    JobSpec job = build_job(*root, source.directory, report);
    if (!report.failed()) {
      std::vector<std::string> notes = notes_about(job);
      outcome.loaded = LoadedSpec{std::move(job), std::move(notes)};
    }
  }
  outcome.diagnostics = report.diagnostics();
  return outcome;
}

}  // namespace monarch
