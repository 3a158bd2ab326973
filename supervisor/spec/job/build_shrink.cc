#include "supervisor/spec/job/build_shrink.h"

#include <optional>
#include <string>
#include <vector>

#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What was written: the keys, the path to them, and where a missing one would stand.
struct Written {
  const YamlNode* map = nullptr;
  Place place = {};
  std::string path;
};

Written written_below(const YamlNode* node, const std::string& path) {
  const YamlNode* supervision = value_of(node, "supervision");
  const YamlNode* map = value_of(supervision, "shrink");
  if (map == nullptr || !map->is(YamlNode::Kind::kMap)) return {};
  return {.map = map, .place = supervision->find_key("shrink")->place, .path = text(path, "supervision.shrink")};
}

Place shrink_place(const Written& written, std::string_view key) {
  const YamlNode* value = value_of(written.map, key);
  return value == nullptr ? written.place : value->place;
}

// The dimension by which gangs are numbered; nothing: the mesh is one gang.
std::optional<std::string> gang_dimension(const MeshSpec& mesh) {
  if (mesh.dims.empty() || mesh.gang.scope == GangScope::kAll) return std::nullopt;
  return mesh.gang.scope == GangScope::kEach ? mesh.dims.back().name : mesh.dims[mesh.gang.along].name;
}

ShrinkPolicy lowered(const YamlNode* map, const ShrinkPolicy& base) {
  return {.along = text_of(map, "along").value_or(base.along),
          .min = integer_of(map, "min").value_or(base.min),
          .regrow = bool_or(map, "regrow", base.regrow)};
}

void check_min(const MeshSpec& mesh, const Written& written, Report& report) {
  const std::uint32_t gangs = mesh.gangs();
  const std::uint32_t min = mesh.supervision.shrink->min;
  if (min <= gangs) return;
  report.error("E0325", shrink_place(written, "min"),
               {.message = text("`", written.path, ".min` is ", min, ", and mesh `", mesh.name, "` has ",
                                counted(gangs, "gang")),
                .label = "more than there are",
                .help = text("`min: ", gangs > 1 ? gangs - 1 : 1, "` would work")});
}

void report_other_dimension(const MeshSpec& mesh, const ShrinkPolicy& policy, const Written& written, Report& report) {
  const auto own = gang_dimension(mesh);
  std::string help;
  if (own) {
    help = text("`along: ", *own, "` would work");
  } else if (mesh.dims.size() > 1) {
    help = text("`gang: ", mesh.dims.front().name, "` would make ", mesh.dims.front().size, " of it");
  }
  report.error("E0324", shrink_place(written, "along"),
               {.message = text("`", written.path, ".along` is `", policy.along, "`, and the gangs of mesh `",
                                mesh.name, "` are not those of that dimension"),
                .label = own ? text("its gangs are those of `", *own, "`") : "the mesh is a single gang",
                .help = std::move(help)});
}

}  // namespace

void build_shrink(JobSpec& job, const YamlNode& root, Report& report) {
  const Written top = written_below(&root, "");
  if (top.map != nullptr) job.supervision.shrink = lowered(top.map, {});
  bool used = false;
  for (MeshSpec& mesh : job.meshes) {
    const Written own = written_below(value_of(value_of(&root, "meshes"), mesh.name), text("meshes.", mesh.name, "."));
    const auto& base = job.supervision.shrink;
    if (own.map == nullptr && !base) continue;
    ShrinkPolicy policy = lowered(own.map, base.value_or(ShrinkPolicy{}));
    const bool fits = gang_dimension(mesh) == policy.along;
    if (!fits && own.map != nullptr && !policy.along.empty()) report_other_dimension(mesh, policy, own, report);
    if (!fits) continue;
    used = used || own.map == nullptr;
    mesh.supervision.shrink = std::move(policy);
    check_min(mesh, own.map == nullptr ? top : own, report);
  }
  if (top.map == nullptr || used || job.supervision.shrink->along.empty() || job.meshes.empty()) return;
  const auto& only = job.meshes.front();
  if (job.meshes.size() == 1 && written_below(value_of(value_of(&root, "meshes"), only.name), "").map == nullptr)
    return report_other_dimension(only, *job.supervision.shrink, top, report);
  report.error("E0324", shrink_place(top, "along"),
               {.message = text("`supervision.shrink.along` is `", job.supervision.shrink->along,
                                "`, and no mesh has gangs of that dimension"),
                .label = "the `gang` of no mesh",
                .help = "write `shrink` in the mesh that is meant, with the dimension of its `gang`"});
}

}  // namespace monarch
