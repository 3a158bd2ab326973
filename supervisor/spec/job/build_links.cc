#include "supervisor/spec/job/build_links.h"

#include <algorithm>
#include <string>
#include <vector>

#include "supervisor/core/spec/stages.h"
#include "supervisor/spec/job/check_references.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

class Linker {
 public:
  Linker(JobSpec& job, const YamlNode& meshes, Report& report) : job_(job), meshes_(meshes), report_(report) {}

  bool link() {
    const std::size_t before = report_.count();
    for (std::uint32_t m = 0; m < job_.meshes.size(); ++m) {
      take_like(MeshId(m));
      take_depends_on(MeshId(m));
    }
    if (report_.count() == before) check_rings_of_like();
    if (report_.count() == before) check_sizes_of_like();
    check_dependencies();
    check_sidecars();
    return report_.count() == before;
  }

 private:
  const YamlNode& node(MeshId mesh) const { return meshes_.items[mesh.value()]; }
  MeshSpec& spec(MeshId mesh) { return job_.meshes[mesh.value()]; }

  std::optional<MeshId> find(const YamlNode& name, MeshId from, const std::string& key) {
    std::vector<std::string> others;
    for (std::uint32_t m = 0; m < job_.meshes.size(); ++m) {
      if (job_.meshes[m].name == name.text && MeshId(m) != from) return MeshId(m);
      if (MeshId(m) != from) others.push_back(job_.meshes[m].name);
    }
    const bool itself = name.text == spec(from).name;
    const auto guess = nearest(name.text, others);
    report_.error(itself ? "E0309" : "E0213", name.place,
                  {.message = text("`", key, "` of mesh `", spec(from).name, "` names ",
                                   itself ? std::string("the mesh itself")
                                          : text("`", name.text, "`, which is no mesh of this job")),
                   .label = itself ? "a mesh cannot wait for itself or share its own hosts" : "no such mesh",
                   .help = guess            ? text("did you mean `", *guess, "`?")
                           : others.empty() ? "there is no other mesh"
                                            : text("the others are: ", join(others, ", "))});
    return std::nullopt;
  }

  void take_like(MeshId mesh) {
    const YamlNode* like = value_of(value_of(&node(mesh), "hosts"), "like");
    if (like == nullptr || !like->is(YamlNode::Kind::kScalar) || like->text.empty()) return;
    spec(mesh).like = find(*like, mesh, "hosts.like");
  }

  void take_depends_on(MeshId mesh) {
    const YamlNode* list = value_of(&node(mesh), "depends_on");
    if (list == nullptr || !list->is(YamlNode::Kind::kList)) return;
    for (const YamlNode& item : list->items) {
      if (!item.is(YamlNode::Kind::kScalar) || item.text.empty()) continue;
      if (const auto other = find(item, mesh, "depends_on")) spec(mesh).depends_on.push_back(*other);
    }
  }

  std::string written_out(const std::vector<MeshId>& ring, const char* verb) {
    std::string out;
    for (const MeshId mesh : ring) out += text(spec(mesh).name, " ", verb, " ");
    return out + spec(ring.front()).name;
  }

  void check_rings_of_like() {
    for (std::uint32_t m = 0; m < job_.meshes.size(); ++m) {
      std::vector<MeshId> way;
      for (std::optional<MeshId> at = MeshId(m); at; at = spec(*at).like) {
        if (std::find(way.begin(), way.end(), *at) == way.end()) {
          way.push_back(*at);
          continue;
        }
        if (*at != MeshId(m)) break;  // it leads to a ring and is not of it
        report_.error("E0309", value_of(value_of(&node(*at), "hosts"), "like")->place,
                      {.message = text("no mesh has hosts of its own: ", written_out(way, "is like")),
                       .label = "closes the ring",
                       .help = text("`hosts: exclusive` for one of them would work")});
        return;  // each mesh of it would say the same
      }
    }
  }

  void check_sizes_of_like() {
    for (std::uint32_t m = 0; m < job_.meshes.size(); ++m) {
      const MeshSpec& mesh = job_.meshes[m];
      if (!mesh.like || mesh.hosts() <= spec(*mesh.like).hosts()) continue;
      report_.error("E0311", value_of(value_of(&node(MeshId(m)), "hosts"), "like")->place,
                    {.message = text("mesh `", mesh.name, "` needs ", mesh.hosts(), " hosts, and `",
                                     spec(*mesh.like).name, "`, whose hosts it shares, has ", spec(*mesh.like).hosts()),
                     .label = text("has ", spec(*mesh.like).hosts()),
                     .help = "`per_host` puts more ranks on one host"});
    }
  }

  void check_dependencies() {
    const auto ring = ring_of_dependencies(job_);
    if (!ring) return;
    const YamlNode* list = value_of(&node(ring->back()), "depends_on");
    const auto closing = std::find_if(list->items.begin(), list->items.end(),
                                      [&](const YamlNode& item) { return item.text == spec(ring->front()).name; });
    report_.error("E0309", closing->place,
                  {.message = text("meshes that wait for each other never start: ", written_out(*ring, "waits for")),
                   .label = "closes the ring",
                   .help = text("`depends_on` of `", spec(ring->back()).name, "` without `", spec(ring->front()).name,
                                "` would work")});
  }

  void check_sidecars() {
    bool any_other = false;
    for (std::uint32_t m = 0; m < job_.meshes.size(); ++m) {
      const MeshSpec& mesh = job_.meshes[m];
      any_other = any_other || !mesh.sidecar || mesh.idle;  // of idle slots alone: until it is stopped
      for (std::size_t i = 0; mesh.sidecar && i < mesh.depends_on.size(); ++i) {
        const MeshSpec& other = spec(mesh.depends_on[i]);
        if (other.sidecar) continue;
        const YamlNode* list = value_of(&node(MeshId(m)), "depends_on");
        const auto written = std::find_if(list->items.begin(), list->items.end(),
                                          [&](const YamlNode& item) { return item.text == other.name; });
        report_.error(
            "E0310", written->place,
            {.message = text("sidecar `", mesh.name, "` waits for `", other.name, "`, which waits for all sidecars"),
             .label = "is no sidecar",
             .help = text("`sidecar: true` for `", other.name, "`, or no `depends_on` here, would work")});
      }
    }
    if (any_other || job_.meshes.empty()) return;
    report_.error("E0310", meshes_.keys.front().place,
                  {.message = "every mesh is a sidecar, so none decides when the job is done",
                   .label = "is a sidecar",
                   .help = "a job needs a mesh without `sidecar: true`"});
  }

  JobSpec& job_;
  const YamlNode& meshes_;
  Report& report_;
};

}  // namespace

bool build_links(JobSpec& job, const YamlNode& meshes, Report& report) {
  const bool linked = Linker(job, meshes, report).link();
  // Without that, who is up before whom cannot be told.
  if (linked) check_references(job, meshes, report);
  return linked;
}

}  // namespace monarch
