#include "supervisor/spec/spec.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "supervisor/spec/auto_dims.h"
#include "supervisor/spec/check/check.h"
#include "supervisor/spec/file_kind.h"
#include "supervisor/spec/hosts/hosts_file.h"
#include "supervisor/spec/hosts/ssh_hosts.h"
#include "supervisor/spec/job/build.h"
#include "supervisor/spec/overlay.h"
#include "supervisor/spec/slurm_allocation.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/source_text.h"
#include "supervisor/spec/yaml/values.h"
#include "supervisor/spec/yaml/yaml.h"
#include "supervisor/spec/yaml/yaml_writer.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<SpecText> texts_of(const SpecParts& parts) {
  std::vector<SpecText> out;
  out.reserve(parts.files.size() + parts.settings.size() +
              3);  // the hosts_file, too: whoever looks at a text goes on doing so
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

// Reads the parts in their order and lays each over what is there. Nothing: a part could not be read, and that is
// reported.
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

// Puts the hosts of `launch.ssh.hosts_file` into the place of its name: they are a part of the job, and whoever reads
// its spec later reads no file but that.
class HostsFile {
 public:
  HostsFile(const SpecParts& parts, const SpecSurroundings& around, std::vector<SpecText>& sources, Report& report)
      : parts_(parts), around_(around), sources_(sources), report_(report) {}

  // Nothing: the spec names none, or it could not be read, and that is reported.
  std::optional<YamlNode> merged_into(const YamlNode& root) {
    const YamlNode* launch = value_of(&root, "launch");
    const YamlNode* ssh = value_of(launch, "ssh");
    const YamlNode* file = value_of(ssh, "hosts_file");
    const bool named = file != nullptr && file->is(YamlNode::Kind::kScalar) && !file->text.empty();
    if (!named || value_of(ssh, "hosts") != nullptr) return std::nullopt;
    std::optional<YamlNode> hosts = read(*file);
    if (!hosts) return std::nullopt;
    YamlNode whole = root;
    YamlNode& target = *whole.find("launch")->find("ssh");
    for (std::size_t i = 0; i < target.keys.size(); ++i) {
      if (target.keys[i].text != "hosts_file") continue;
      target.keys[i].text = "hosts";
      target.items[i] = std::move(*hosts);
    }
    return whole;
  }

 private:
  std::optional<YamlNode> read(const YamlNode& file) {
    const PathBases bases{.directory = parts_.files.front().directory, .home = around_.home};
    const auto path = local_path(file, "launch.ssh.hosts_file", bases, report_);
    if (!path) return std::nullopt;
    const Error nowhere{ErrorCode::kUnsupported, "a spec that is read here names its hosts itself"};
    const Result<std::string> bytes = around_.read_hosts ? around_.read_hosts(*path) : Result<std::string>(nowhere);
    if (!bytes.ok()) {
      report_.error("E0013", file.place,
                    {.message = bytes.error().message, .label = "", .help = "`hosts: node[01-04]` needs no file"});
      return std::nullopt;
    }
    const auto number = static_cast<std::uint32_t>(sources_.size());
    const std::string shown = (std::filesystem::path(parts_.files.front().name).parent_path() / file.text).string();
    const std::string written(without_byte_order_mark(*bytes));
    const bool may_be_shown = is_the_specs_own(*path);
    sources_.push_back({.name = shown, .text = may_be_shown ? written : ""});
    (void)report_.add_source(shown, sources_.back().text);
    const std::size_t before = report_.count();
    if (!may_be_shown && tell_faults_alone(written, shown, file.place)) return std::nullopt;
    YamlNode hosts = read_hosts_file(written, report_, number);
    if (hosts.is(YamlNode::Kind::kList) && hosts.items.empty() && report_.count() == before) {
      report_.error(
          "E0208", file.place,
          {.message = text(*path, " holds no hosts"), .label = "", .help = "write one host on each line of it"});
      return std::nullopt;
    }
    if (report_.count() == before) (void)read_ssh_hosts(hosts, shown, {}, report_);
    if (report_.count() > before) return std::nullopt;
    hosts.place = file.place;
    return hosts;
  }

  // A spec may be a stranger's, and name any file of who looks at it.
  bool is_the_specs_own(const std::string& path) const {
    const auto real = [this](const std::string& any) { return around_.real_path ? around_.real_path(any) : any; };
    const std::filesystem::path folder = real(parts_.files.front().directory);
    const std::filesystem::path below = std::filesystem::path(real(path)).lexically_relative(folder);
    return !below.empty() && *below.begin() != "..";
  }

  // Where they are and of what kind, and no word of the file. False: there are none.
  bool tell_faults_alone(const std::string& written, const std::string& shown, Place place) {
    Report own(shown, written);
    const YamlNode hosts = read_hosts_file(written, own, 0);
    if (!own.failed()) (void)read_ssh_hosts(hosts, shown, {}, own);
    for (const Diagnostic& fault : own.diagnostics()) {
      const ErrorDoc* kind = find_error(fault.id);
      report_.error(kind->id, place,
                    {.message = text(shown, ":", fault.line, ":", fault.column, ": ", kind->title),
                     .label = "",
                     .help = "nothing of that file is shown, for it lies outside of the spec's folder"});
    }
    return own.failed();
  }

  const SpecParts& parts_;
  const SpecSurroundings& around_;
  std::vector<SpecText>& sources_;
  Report& report_;
};

// Later readers see the merged text alone: it must say to them what the parts say here.
std::optional<std::string> merged_text(const YamlNode& root, const JobSpec& job, const SpecSurroundings& around,
                                       Report& report) {
  std::string merged = write_yaml(root);
  const SpecOutcome again = load_spec({.name = "the merged spec", .text = merged, .directory = job.directory}, around);
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

std::string note_of_no_kill(const JobSpec& job) {
  return text("launch.slurm: Slurm does not show whether job ", job.launch.facts().allocation->job,
              " was asked for with --no-kill: without it, one node that fails ends all (SLURM_NO_KILL=1 in its "
              "environment says that it was)");
}

}  // namespace

SpecOutcome load_spec(const SpecParts& parts, const SpecSurroundings& around) {
  MONARCH_ASSERT(!parts.files.empty());
  SpecOutcome outcome;
  outcome.sources = texts_of(parts);
  Report report;
  for (const SpecText& source : outcome.sources)
    (void)report.add_source(source.name, source.text);  // counted as they are
  const std::optional<YamlNode> root = Merger(parts, outcome.sources, report).merge();
  if (root) {
    if (refuse_other_kind(*root, FileKind::kSpec, report)) {
      outcome.diagnostics = report.diagnostics();
      return outcome;
    }
    check_against_schema(spec_schema(), *root, report, around.unbuilt);
    const std::optional<YamlNode> with_hosts = HostsFile(parts, around, outcome.sources, report).merged_into(*root);
    const std::optional<YamlNode> allocated = with_allocation(*root, around, report);
    const YamlNode& named = with_hosts ? *with_hosts : allocated ? *allocated : *root;
    const std::optional<AutoDims> counted = with_counted_dims(named, parts, around, outcome.sources, report);
    const YamlNode& shaped = counted ? counted->root : named;
    const PathBases bases{.directory = parts.files.front().directory, .home = around.home};
    const std::optional<YamlNode> hashed = with_plugin_hashes(shaped, bases, around.hash_plugin, report);
    const YamlNode& full = hashed ? *hashed : shaped;
    JobSpec job = build_job(full, bases, report);
    if (!report.failed()) {
      const bool own_bytes = is_one_file(parts) && !with_hosts && !allocated && !counted && !hashed;
      auto whole = own_bytes ? std::optional(parts.files.front().text) : merged_text(full, job, around, report);
      std::vector<std::string> notes = notes_about(job);
      if (allocated && !around.says_no_kill) notes.push_back(note_of_no_kill(job));
      if (counted) notes.insert(notes.begin(), counted->notes.begin(), counted->notes.end());
      if (whole) outcome.loaded = LoadedSpec{std::move(job), std::move(notes), std::move(*whole), *root};
    }
  }
  outcome.diagnostics = report.diagnostics();
  return outcome;
}

SpecOutcome load_spec(const SpecSource& source, const SpecSurroundings& around) {
  SpecParts parts;
  parts.files.push_back(source);
  return load_spec(parts, around);
}

std::string render(const SpecOutcome& outcome, RenderOptions options) {
  std::vector<std::string_view> texts;
  for (const SpecText& source : outcome.sources) texts.emplace_back(source.text);
  return render(outcome.diagnostics, texts, options);
}

}  // namespace monarch
