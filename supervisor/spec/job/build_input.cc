#include "supervisor/spec/job/build_input.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kInputForms = "`none`, a rank such as `0`, `all`, and `MESH/RANK` or `MESH/all` would work";

// Of those that a person has written: a controller has no input.
std::size_t own_meshes(const JobSpec& job) {
  return static_cast<std::size_t>(
      std::count_if(job.meshes.begin(), job.meshes.end(), [](const MeshSpec& mesh) { return !mesh.serves; }));
}

}  // namespace

void build_input(const YamlNode& node, JobSpec& job, Report& report) {
  const std::string& written = node.text;
  if (written == "none" || job.meshes.empty()) return;
  const auto refuse = [&](const char* id, std::string message, std::string label) {
    report.error(id, node.place,
                 {.message = std::move(message), .label = std::move(label), .help = std::string(kInputForms)});
  };
  const std::size_t slash = written.find('/');
  const std::string rank = slash == std::string::npos ? written : written.substr(slash + 1);
  const auto named = [&](const MeshSpec& mesh) {
    return slash == std::string::npos ? !mesh.serves : mesh.name == written.substr(0, slash);
  };
  const auto mesh = std::find_if(job.meshes.begin(), job.meshes.end(), named);
  if (slash == std::string::npos && own_meshes(job) != 1) {
    return refuse("E0213", text("`stdin: ", printable(written), "` does not say of which mesh"), "of which mesh?");
  }
  if (mesh == job.meshes.end()) {
    return refuse("E0213", text("no mesh is called `", printable(written.substr(0, slash)), "`"), "no such mesh");
  }
  InputSpec input{.mesh = MeshId(static_cast<std::uint32_t>(mesh - job.meshes.begin())), .rank = {}};
  if (rank != "all") {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), number);
    const bool is_number = !rank.empty() && error == std::errc() && end == rank.data() + rank.size();
    if (!is_number) return refuse("E0210", text("`", printable(rank), "` is no rank"), "is no rank");
    if (number >= mesh->size()) {
      return refuse("E0213", text("mesh `", mesh->name, "` has ", mesh->size(), " ranks, and no rank ", number),
                    "no such rank");
    }
    input.rank = Rank(number);
  }
  job.input = input;
}

}  // namespace monarch
