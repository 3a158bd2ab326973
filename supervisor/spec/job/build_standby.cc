#include "supervisor/spec/job/build_standby.h"

#include <algorithm>
#include <string>

#include "supervisor/core/spec/expansion.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

const YamlNode& gangs_of(const YamlNode& mesh) { return *value_of(value_of(&mesh, "standby"), "gangs"); }

bool shares_hosts(const JobSpec& job, MeshId id) {
  const MeshSpec& mesh = job.meshes[id.value()];
  const bool like_it = std::any_of(job.meshes.begin(), job.meshes.end(),
                                   [id](const MeshSpec& other) { return other.like && *other.like == id; });
  return mesh.like || like_it || mesh.gang_size() % mesh.per_host() != 0;
}

// What is wrong with a reference in itself is told elsewhere.
bool depends_on_place(const std::string& word, const JobSpec& job, MeshId id) {
  const ExpansionText pieces = parse_expansion(word);
  return std::any_of(pieces.begin(), pieces.end(), [&](const ExpansionPiece& piece) {
    if (!piece.reference) return false;
    const ReadReference read = read_reference(*piece.reference, job, id);
    return read.meaning && read.meaning->kind != ReferenceMeaning::Kind::kVariable;
  });
}

void check_words(const JobSpec& job, MeshId id, const YamlNode& node, Report& report) {
  const auto check = [&](const YamlNode* word) {
    if (word == nullptr || !depends_on_place(word->text, job, id)) return;
    report.error("E0330", word->place,
                 {.message = text("`", word->text, "` is not known to a standby gang of mesh `",
                                  job.meshes[id.value()].name, "`"),
                  .label = "depends on the place that it is given later",
                  .help = "let `env` hold it: gate() returns it"});
  };
  for (const char* key : {"wrap", "program"}) {
    const YamlNode* words = value_of(&node, key);
    if (words == nullptr || !words->is(YamlNode::Kind::kList)) continue;
    for (const YamlNode& word : words->items) check(&word);
  }
  check(value_of(&node, "workdir"));
}

}  // namespace

void check_standby(const JobSpec& job, const YamlNode& meshes, Report& report) {
  std::uint64_t needed = 0;
  for (std::uint32_t m = 0; m < job.meshes.size(); ++m) {
    const MeshSpec& mesh = job.meshes[m];
    if (mesh.standby_gangs == 0) continue;
    const YamlNode& node = meshes.items[m];
    const YamlNode& gangs = gangs_of(node);
    const std::uint64_t before = needed;
    needed += std::uint64_t{mesh.standby_gangs} * mesh.gang_hosts();
    if (before <= job.spares() && needed > job.spares()) {
      report.error(
          "E0327", gangs.place,
          {.message = text("standby gangs need ", counted(needed, "spare"), ", and the job has ", job.spares()),
           .label = text(counted(mesh.gang_hosts(), "host"), " for each"),
           .help = text("`spares: ", needed, "` of the launcher, or more, would work")});
    }
    if (shares_hosts(job, MeshId(m))) {
      report.error("E0328", gangs.place,
                   {.message = text("the gangs of mesh `", mesh.name, "` share hosts with others"),
                    .label = "a standby gang takes whole hosts",
                    .help = "a gang whose hosts are its own would work"});
    }
    if (mesh.resources.gpus.value_or(0) > 0 && job.launch.facts().one_machine) {
      report.error("E0329", gangs.place,
                   {.message = text("standby gangs of mesh `", mesh.name, "` would need GPUs of virtual hosts"),
                    .label = "which GPUs goes by the place that it is given later",
                    .help = ""});
    }
    check_words(job, MeshId(m), node, report);
  }
}

}  // namespace monarch
