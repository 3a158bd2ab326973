#include "supervisor/spec/job/build_mesh.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "supervisor/core/spec/expansion.h"
#include "supervisor/core/spec/variables.h"
#include "supervisor/spec/job/build_actors.h"
#include "supervisor/spec/job/build_needs.h"
#include "supervisor/spec/job/build_supervision.h"
#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/schema/suggest.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"
#include "transport/messages/rank.h"

namespace monarch {

namespace {

std::vector<std::string> dimension_names(const std::vector<Dimension>& dims) {
  std::vector<std::string> names;
  for (const Dimension& dim : dims) names.push_back(dim.name);
  return names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  auto guess = nearest(word, known);
  // What other programs call the two extremes of `gang`.
  const bool gang = !known.empty() && known.back() == "each";
  for (const std::string_view alone : {"rank", "none", "process", "task"}) {
    if (gang && !guess && word == alone) guess = "each";
  }
  for (const std::string_view together : {"mesh", "job", "world", "group"}) {
    if (gang && !guess && word == together) guess = "all";
  }
  return guess ? text("did you mean `", *guess, "`?") : text("one of ", join(known, ", "), " would work");
}

class MeshBuilder {
 public:
  MeshBuilder(const YamlKey& name, const YamlNode& node, Report& report) : name_(name), node_(node), report_(report) {}

  std::optional<MeshSpec> build(const JobSpec& job) {
    mesh_.name = name_.text;
    const bool shaped = build_dims();
    const bool placed = shaped && build_per_host();
    if (shaped) build_gang();
    check_one_thing_to_run();
    build_program();
    build_env();
    build_workdir(job);
    build_stop();
    mesh_.wrap = texts_of(&node_, "wrap");
    mesh_.setup = text_of(&node_, "setup").value_or("");
    build_needs(node_, mesh_, report_);
    build_idle();
    mesh_.sidecar = mesh_.idle || bool_or(&node_, "sidecar", false);
    mesh_.serves = mesh_.idle || (mesh_.name != kControllerMesh && is_actor_program(mesh_.program));
    const YamlNode* supervision = value_of(&node_, "supervision");
    mesh_.supervision = build_supervision(supervision, job.supervision);
    check_supervision(mesh_.supervision, supervision, text(path(), ".supervision"), report_);
    return placed ? std::optional(std::move(mesh_)) : std::nullopt;
  }

 private:
  std::string path() const { return text("meshes.", name_.text); }

  bool build_dims() {
    const YamlNode* dims = value_of(&node_, "dims");
    if (dims == nullptr || !dims->is(YamlNode::Kind::kMap) || dims->keys.empty()) return false;
    std::uint64_t size = 1;
    bool complete = true;
    for (std::size_t i = 0; i < dims->keys.size(); ++i) {
      const auto written = integer_of(dims, dims->keys[i].text);
      if (!written || *written == 0 || *written > limits::kRanksPerJob) complete = false;
      mesh_.dims.push_back({dims->keys[i].text, complete ? *written : 1});
      const std::uint64_t next = size * mesh_.dims.back().size;
      if (size <= limits::kRanksPerJob && next > limits::kRanksPerJob) report_too_many(dims->keys[i], size);
      size = std::min<std::uint64_t>(next, limits::kRanksPerJob + 1U);
    }
    return complete && size <= limits::kRanksPerJob;
  }

  // `outer` is the product of the dimensions before `dim`, which alone would still do.
  void report_too_many(const YamlKey& dim, std::uint64_t outer) {
    const std::uint64_t fits = limits::kRanksPerJob / outer;
    report_.error("E0306", dim.place,
                  {.message = text("mesh `", name_.text, "` has more than ", limits::kRanksPerJob, " ranks"),
                   .label = text("the dimensions before it already make ", outer),
                   .help = text("`", dim.text, ": ", fits, "` would work")});
  }

  bool build_per_host() {
    const std::vector<std::string> names = dimension_names(mesh_.dims);
    const YamlNode* written = value_of(&node_, "per_host");
    if (written == nullptr || !written->is(YamlNode::Kind::kList)) {
      const auto host = std::find(names.begin(), names.end(), "host");
      mesh_.per_host_dims = host == names.end() ? names.size() : static_cast<std::size_t>(names.end() - host) - 1;
      return true;
    }
    for (const YamlNode& item : written->items) {
      if (item.is(YamlNode::Kind::kRefused)) return false;
      if (std::find(names.begin(), names.end(), item.text) != names.end()) continue;
      report_.error("E0213", item.place,
                    {.message = text("`per_host` names `", item.text, "`, which mesh `", name_.text, "` does not have"),
                     .label = "not a dimension",
                     .help = did_you_mean(item.text, names)});
      return false;
    }
    const std::vector<std::string> wanted = texts_of(&node_, "per_host");
    const std::size_t count = std::min(wanted.size(), names.size());
    const std::vector<std::string> innermost(names.end() - static_cast<std::ptrdiff_t>(count), names.end());
    if (wanted != innermost) {
      report_.error("E0214", written->place,
                    {.message = text("`per_host` of mesh `", name_.text, "` is not its innermost dimensions"),
                     .label = "ranks of one host are neighbours",
                     .help = text("`[", join(innermost, ", "), "]` would work")});
      return false;
    }
    mesh_.per_host_dims = count;
    return true;
  }

  void build_gang() {
    const YamlNode* written = value_of(&node_, "gang");
    if (written == nullptr || !written->is(YamlNode::Kind::kScalar) || written->text == "all") return;
    if (written->text == "each") {
      mesh_.gang.scope = GangScope::kEach;
      return;
    }
    std::vector<std::string> names = dimension_names(mesh_.dims);
    const auto found = std::find(names.begin(), names.end(), written->text);
    if (found != names.end()) {
      mesh_.gang = {GangScope::kDimension, static_cast<std::size_t>(found - names.begin())};
      return;
    }
    names.emplace_back("all");
    names.emplace_back("each");
    report_.error("E0213", written->place,
                  {.message = text("`gang` names `", written->text, "`, which mesh `", name_.text, "` does not have"),
                   .label = "neither a dimension, nor all, nor each",
                   .help = did_you_mean(written->text, names)});
  }

  void check_one_thing_to_run() {
    const int things =
        (value_of(&node_, "program") != nullptr ? 1 : 0) + (value_of(&node_, "actors") != nullptr ? 1 : 0);
    if (things == 1) return;
    for (const YamlKey& key : node_.keys) {
      if (things == 0 && suggest_key(spec_schema(), "meshes.*", key.text) == "did you mean `program`?")
        return;  // said there
    }
    report_.error(
        "E0106", name_.place,
        {.message = text("mesh `", name_.text, "` has ", things == 0 ? "nothing" : "more than one thing", " to run"),
         .label = "exactly one of `program` and `actors` is needed",
         .help = things == 0 ? "add `program: [python3, train.py]`" : "split it into two meshes"});
  }

  void build_program() {
    const YamlNode* program = value_of(&node_, "program");
    if (program == nullptr || !program->is(YamlNode::Kind::kList) || program->items.empty()) return;
    mesh_.program = texts_of(&node_, "program");
    const YamlNode& first = program->items.front();
    if (!first.is(YamlNode::Kind::kScalar)) return;
    const std::size_t space = first.text.find(' ');
    const bool line = program->items.size() == 1 && space != std::string::npos && first.text.find('/') > space;
    if (first.text.empty()) {
      report_.error("E0210", first.place,
                    {.message = text("`", path(), ".program` names no program"), .label = "is empty"});
    } else if (line) {
      report_.error("E0210", first.place,
                    {.message = text("`", path(), ".program` is a command line in one text"),
                     .label = "no program is called that",
                     .help = text("did you mean `", as_program_list(first.text), "`?")});
    }
  }

  // Each slot is a gang of its own, which comes and goes alone.
  void build_idle() {
    mesh_.idle = bool_or(&node_, "idle", false);
    const YamlNode* const claims = value_of(&node_, "claims");
    mesh_.claims.trusts_job = text_of(&node_, "trust") == "job";
    mesh_.claims.env = texts_of(claims, "env");
    if (!mesh_.idle) {
      if (!mesh_.claims.env.empty()) refuse_beside(claims, "claims", "`idle: true` makes slots that can be claimed");
      return;
    }
    const YamlNode* const gang = value_of(&node_, "gang");
    if (gang != nullptr && gang->text != "each") refuse_beside(gang, "gang", "`gang: each` is what it has");
    mesh_.gang.scope = GangScope::kEach;
    const YamlNode* const standby = value_of(value_of(&node_, "standby"), "gangs");
    if (standby != nullptr && standby->text != "0")
      refuse_beside(standby, "standby.gangs", "nobody stands by for a slot: leave it out");
    const YamlNode* const shrink = value_of(value_of(&node_, "supervision"), "shrink");
    refuse_beside(shrink, "supervision.shrink", "a slot that is lost is told to who has it: leave it out");
    const YamlNode* const sidecar = value_of(&node_, "sidecar");
    if (sidecar != nullptr && sidecar->text == "false")
      refuse_beside(sidecar, "sidecar", "slots never decide the result");
  }

  void refuse_beside(const YamlNode* node, const char* key, const char* help) {
    if (node == nullptr) return;
    report_.error(
        "E0336", node->place,
        {.message = text("`", path(), ".", key, "` does not go with `idle: ", mesh_.idle ? "true`" : "false`"),
         .label = "says otherwise",
         .help = help});
  }

  void build_env() {
    const YamlNode* env = value_of(&node_, "env");
    if (env != nullptr && env->is(YamlNode::Kind::kMap)) {
      for (std::size_t i = 0; i < env->keys.size(); ++i) {
        mesh_.env.emplace(env->keys[i].text, env->items[i].text);
      }
    }
    mesh_.env_pass = texts_of(&node_, "env_pass");
    const YamlNode* pass = value_of(&node_, "env_pass");
    for (std::size_t i = 0; i < mesh_.env_pass.size(); ++i) {
      const YamlNode& item = pass->items[i];
      if (!item.is(YamlNode::Kind::kScalar) || item.text.empty()) continue;
      if (!is_variable_pattern(item.text)) {
        report_.error("E0209", item.place,
                      {.message = text("`", item.text, "` is not the name of an environment variable"),
                       .label = "a name, or the start of names with one `*` at its end"});
      } else if (is_variable_of_ours(item.text)) {
        report_.error(
            "E0209", item.place,
            {.message = text("`", item.text, "` is set by monarch for each rank"), .label = "would be overwritten"});
      }
    }
  }

  // Where the tree lies, each host knows.
  void build_workdir_in_tree(const YamlNode& workdir) {
    const std::string below = std::filesystem::path(workdir.text).lexically_normal().string();
    if (below != ".." && !below.starts_with("../")) {
      if (below != "." && below != "./") mesh_.workdir = below;
      return;
    }
    report_.error("E0319", workdir.place,
                  {.message = text("`", path(), ".workdir` lies outside of the workspace"),
                   .label = "counted from the workspace's folder",
                   .help = "write a whole path, or let `workspace.path` name a folder that holds it"});
  }

  void build_workdir(const JobSpec& job) {
    const YamlNode* workdir = value_of(&node_, "workdir");
    if (workdir == nullptr || !workdir->is(YamlNode::Kind::kScalar) || workdir->text.empty()) return;
    if (workdir->text.starts_with('~')) {
      report_.error("E0210", workdir->place,
                    {.message = text("`", path(), ".workdir` starts with `~`"),
                     .label = "is not expanded",
                     .help = "write the whole path, or one relative to the spec's folder"});
      return;
    }
    if (workdir->text == ".") return;
    if (has_references(workdir->text)) {
      // Where a reference begins it, only its value tells whether it is a whole path; and `..` may follow one.
      mesh_.workdir = workdir->text;
      return;
    }
    if (job.workspace && !workdir->text.starts_with('/')) return build_workdir_in_tree(*workdir);
    const std::filesystem::path whole = std::filesystem::path(job.directory) / workdir->text;
    mesh_.workdir = whole.lexically_normal().string();
  }

  void build_stop() {
    mesh_.standby_gangs = integer_of(value_of(&node_, "standby"), "gangs").value_or(0);
    const YamlNode* stop = value_of(&node_, "stop");
    mesh_.stop.grace = duration_or(stop, "grace", mesh_.stop.grace);
    mesh_.stop.after_failure = duration_or(stop, "after_failure", mesh_.stop.after_failure);
    constexpr std::pair<std::string_view, int> kSignals[] = {{"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},
                                                             {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
                                                             {"KILL", SIGKILL}};
    const auto written = text_of(stop, "signal");
    for (const auto& [name, number] : kSignals) {
      if (written == name) mesh_.stop.signal = number;
    }
    if (const auto to = signal_to(text_of(stop, "to").value_or(""))) mesh_.stop.to = *to;
  }

  const YamlKey& name_;
  const YamlNode& node_;
  Report& report_;
  MeshSpec mesh_;
};

}  // namespace

std::optional<MeshSpec> build_mesh(const YamlKey& name, const YamlNode& node, const JobSpec& job, Report& report) {
  return MeshBuilder(name, node, report).build(job);
}

}  // namespace monarch
