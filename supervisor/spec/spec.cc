#include "supervisor/spec/spec.h"

#include <string_view>
#include <utility>

#include "supervisor/spec/build.h"
#include "supervisor/spec/check.h"
#include "supervisor/spec/overlay.h"
#include "supervisor/spec/source_text.h"
#include "supervisor/spec/yaml.h"
#include "supervisor/spec/yaml_writer.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<SpecText> texts_of(const SpecParts& parts) {
  std::vector<SpecText> out;
  for (const SpecSource& file : parts.files) {
    out.push_back({file.name, std::string(without_byte_order_mark(file.text))});
  }
  for (const FlagText& setting : parts.settings) out.push_back({setting.from, setting.text});
  if (parts.launch) out.push_back({parts.launch->from, parts.launch->text});
  if (parts.arguments) {
    const FlagText words = arguments_text(parts.arguments->words);
    out.push_back({words.from, words.text});
  }
  return out;
}

// Reads the parts in their order and lays each over what is there. Nothing: a part could not be read, and that is reported.
class Merger {
 public:
  Merger(const SpecParts& parts, const std::vector<SpecText>& texts, Report& report)
      : parts_(parts), texts_(texts), report_(report) {}

  std::optional<YamlNode> merge() {
    for (std::size_t i = 0; i < parts_.files.size(); ++i) take_file(read_yaml(texts_[next_].text, report_, next_));
    for (const FlagText& setting : parts_.settings) take_setting(read_setting(setting, report_, next_));
    if (parts_.launch) take_launch(read_launch(*parts_.launch, report_, next_));
    if (parts_.arguments && root_) append_arguments(*root_, *parts_.arguments, report_, next_);
    return complete_ ? std::move(root_) : std::nullopt;
  }

 private:
  void take_file(std::optional<YamlNode> node) {
    const bool over = next_ > 0;
    if (node && over && !node->is(YamlNode::Kind::kMap) && !node->is(YamlNode::Kind::kRefused)) {
      report_.error("E0103", node->place,
                    {.message = text("a spec is a map, not ", kind_name(*node)),
                     .label = "",
                     .help = "an overlay has the keys that it changes, each at its place"});
      node.reset();
    }
    take(std::move(node));
  }

  void take(std::optional<YamlNode> node) {
    ++next_;
    if (!node) {
      complete_ = false;
    } else if (!root_) {
      root_ = std::move(node);
    } else if (root_->is(YamlNode::Kind::kMap)) {
      lay_over(*root_, std::move(*node));
    }
  }

  void take_setting(std::optional<Setting> setting) {
    // One that cannot be laid over anything is a fault of its own already, or the files are.
    if (setting && root_ && !reaches(*root_, *setting, report_)) setting.reset();
    take(setting ? std::optional(tree_of(std::move(*setting))) : std::nullopt);
  }

  // Not merged with what the files say: their spares and addresses belong to their launcher.
  void take_launch(std::optional<YamlNode> node) {
    if (node && root_ && root_->is(YamlNode::Kind::kMap)) {
      if (YamlNode* written = root_->find("launch")) *written = {.kind = YamlNode::Kind::kNothing};
    }
    take(std::move(node));
  }

  const SpecParts& parts_;
  const std::vector<SpecText>& texts_;
  Report& report_;
  std::optional<YamlNode> root_;
  std::uint32_t next_ = 0;  // the part that is read next
  bool complete_ = true;
};

bool is_one_file(const SpecParts& parts) {
  return parts.files.size() == 1 && parts.settings.empty() && !parts.launch && !parts.arguments;
}

// Later readers see the merged text alone: it must say to them what the parts say here.
std::optional<std::string> merged_text(const YamlNode& root, const JobSpec& job, Report& report) {
  std::string merged = write_yaml(root);
  const SpecOutcome again = load_spec({.name = "the merged spec", .text = merged, .directory = job.directory});
  if (again.loaded) {
    MONARCH_ASSERT(again.loaded->spec == job);
    return merged;
  }
  const Diagnostic& first = again.diagnostics.front();
  // The register's own id: a Report keeps no copy.
  report.error(find_error(first.id)->id, {},
               {.message = text("all parts together: ", first.message), .label = "", .help = first.help});
  return std::nullopt;
}

}  // namespace

SpecOutcome load_spec(const SpecParts& parts) {
  MONARCH_ASSERT(!parts.files.empty());
  SpecOutcome outcome;
  outcome.sources = texts_of(parts);
  Report report;
  for (const SpecText& source : outcome.sources)
    (void)report.add_source(source.name, source.text);  // counted as they are
  const std::optional<YamlNode> root = Merger(parts, outcome.sources, report).merge();
  if (root) {
    check_against_schema(*root, report);
    JobSpec job = build_job(*root, parts.files.front().directory, report);
    if (!report.failed()) {
      auto whole = is_one_file(parts) ? std::optional(parts.files.front().text) : merged_text(*root, job, report);
      std::vector<std::string> notes = notes_about(job);
      if (whole) outcome.loaded = LoadedSpec{std::move(job), std::move(notes), std::move(*whole), *root};
    }
  }
  outcome.diagnostics = report.diagnostics();
  return outcome;
}

SpecOutcome load_spec(const SpecSource& source) {
  SpecParts parts;
  parts.files.push_back(source);
  return load_spec(parts);
}

std::string render(const SpecOutcome& outcome, RenderOptions options) {
  std::vector<std::string_view> texts;
  for (const SpecText& source : outcome.sources) texts.emplace_back(source.text);
  return render(outcome.diagnostics, texts, options);
}

}  // namespace monarch
