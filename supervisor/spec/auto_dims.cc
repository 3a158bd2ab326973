#include "supervisor/spec/auto_dims.h"

#include <algorithm>

#include "supervisor/spec/job/build.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

struct AutoDim {
  std::string mesh;
  std::string name;
  std::size_t index = 0;  // into the mesh's dims
  Place place;
  bool only = true;  // of its mesh
  std::string path() const { return text("meshes.", mesh, ".dims.", name); }
};

bool is_map(const YamlNode* node) { return node != nullptr && node->is(YamlNode::Kind::kMap); }

bool is_auto(const YamlNode& node) { return node.is(YamlNode::Kind::kScalar) && node.text == "auto"; }

std::vector<AutoDim> auto_dims(const YamlNode& root) {
  std::vector<AutoDim> found;
  const YamlNode* meshes = value_of(&root, "meshes");
  if (!is_map(meshes)) return found;
  for (std::size_t m = 0; m < meshes->keys.size(); ++m) {
    const YamlNode* dims = value_of(&meshes->items[m], "dims");
    if (!is_map(dims)) continue;
    bool first = true;
    for (std::size_t i = 0; i < dims->items.size(); ++i) {
      if (!is_auto(dims->items[i])) continue;
      found.push_back({.mesh = meshes->keys[m].text,
                       .name = dims->keys[i].text,
                       .index = i,
                       .place = dims->items[i].place,
                       .only = first});
      first = false;
    }
  }
  return found;
}

void set_size(YamlNode& root, const AutoDim& dim, std::uint32_t size) {
  YamlNode& node = root.find("meshes")->find(dim.mesh)->find("dims")->items[dim.index];
  node.text = text(size);
  node.quoted = false;
}

// Whether the spec puts its ranks on virtual hosts of this machine; `launch` may still be anything.
bool is_local(const YamlNode& root) {
  const YamlNode* launch = value_of(&root, "launch");
  return !is_map(launch) || (launch->find("ssh") == nullptr && launch->find("slurm") == nullptr);
}

class Counter {
 public:
  // `probe` has 1 in the place of each.
  Counter(const JobSpec& probe, bool local, std::uint32_t gpus, Report& report)
      : probe_(probe), local_(local), gpus_(gpus), report_(report) {}

  std::optional<std::uint32_t> size_of(const AutoDim& dim) {
    if (!local_) return refuse(dim, "hosts elsewhere are not asked for their GPUs before the job starts");
    if (!dim.only) return refuse(dim, "another dimension of this mesh counts the GPUs already");
    const auto mesh = std::find_if(probe_.meshes.begin(), probe_.meshes.end(),
                                   [&](const MeshSpec& one) { return one.name == dim.mesh; });
    if (mesh == probe_.meshes.end()) return std::nullopt;  // something else is wrong with it, and reported
    if (dim.index + mesh->per_host_dims < mesh->dims.size()) {
      return refuse(dim, "it is spread over hosts, and `auto` counts the GPUs of one");
    }
    if (gpus_ == 0) return refuse(dim, "this machine has no GPU");
    const std::uint32_t here = gpus_ / hosts();
    return here > 0 ? std::optional(here) : refuse(dim, text("there are ", gpus_and_hosts(), ", so some have none"));
  }

  std::string gpus_and_hosts() const {
    return text(counted(gpus_, "GPU"), " for ", counted(hosts(), "host", "virtual hosts"));
  }

 private:
  std::uint32_t hosts() const { return std::max(1U, probe_.hosts_needed()); }

  std::nullopt_t refuse(const AutoDim& dim, std::string label) {
    report_.error("E0316", dim.place,
                  {.message = text("`", dim.path(), ": auto` cannot be counted"),
                   .label = std::move(label),
                   .help = "write a number"});
    return std::nullopt;
  }

  const JobSpec& probe_;
  bool local_;
  std::uint32_t gpus_;
  Report& report_;
};

}  // namespace

std::optional<AutoDims> with_counted_dims(const YamlNode& root, const SpecParts& parts, const SpecSurroundings& around,
                                          const std::vector<SpecText>& sources, Report& report) {
  const std::vector<AutoDim> dims = auto_dims(root);
  if (dims.empty()) return std::nullopt;
  AutoDims out{.root = root, .notes = {}};
  for (const AutoDim& dim : dims) set_size(out.root, dim, 1);
  Report unheard;  // what is wrong with the rest is reported by whoever builds the job
  for (const SpecText& source : sources) (void)unheard.add_source(source.name, source.text);
  const JobSpec probe = build_job(out.root, {.directory = parts.files.front().directory, .home = around.home}, unheard);
  const bool local = is_local(root);
  Counter counter(probe, local, local && around.count_gpus ? around.count_gpus() : 0, report);
  for (const AutoDim& dim : dims) {
    const auto size = counter.size_of(dim);
    if (!size) continue;
    set_size(out.root, dim, *size);
    out.notes.push_back(text(dim.path(), ": auto is ", *size, " here: ", counter.gpus_and_hosts()));
  }
  return out;
}

}  // namespace monarch
