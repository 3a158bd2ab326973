#include "supervisor/core/spec/expansion.h"

#include <algorithm>
#include <array>

#include "supervisor/core/spec/stages.h"
#include "supervisor/core/spec/variables.h"
#include "transport/base/assert.h"

namespace monarch {

namespace {

constexpr std::array<std::string_view, 3> kPrefixes = {"$(self.", "$(mesh.", "$(env."};

// Where the next of ours begins.
std::size_t next_reference(std::string_view text, std::size_t from) {
  std::size_t nearest = std::string_view::npos;
  for (const std::string_view prefix : kPrefixes) nearest = std::min(nearest, text.find(prefix, from));
  return nearest;
}

std::vector<std::string> split_at_points(std::string_view inside) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t point = inside.find('.');
    parts.emplace_back(inside.substr(0, point));
    if (point == std::string_view::npos) return parts;
    inside.remove_prefix(point + 1);
  }
}

std::string rest_of(const std::vector<std::string>& path, std::size_t from) {
  std::string rest;
  for (std::size_t i = from; i < path.size(); ++i) rest += (i == from ? "" : ".") + path[i];
  return rest;
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

ReadReference fault(ReferenceFault::Kind kind, std::string word, std::string mesh = {},
                    std::vector<std::string> known = {}) {
  return {.meaning = std::nullopt,
          .fault = {.kind = kind, .word = std::move(word), .mesh = std::move(mesh), .known = std::move(known)}};
}

ReadReference found(ReferenceMeaning meaning) { return {.meaning = std::move(meaning), .fault = {}}; }

ReadReference read_port(const std::vector<std::string>& path, std::size_t at, const MeshSpec& mesh,
                        ReferenceMeaning meaning) {
  const std::string name = rest_of(path, at);
  std::vector<std::string> known;
  for (std::size_t i = 0; i < mesh.ports.size(); ++i) {
    if (mesh.ports[i].name == name) {
      meaning.port = i;
      return found(std::move(meaning));
    }
    known.push_back(mesh.ports[i].name);
  }
  return fault(ReferenceFault::Kind::kUnknownPort, name, mesh.name, std::move(known));
}

ReadReference read_self(const Reference& reference, const MeshSpec& mesh) {
  using Kind = ReferenceMeaning::Kind;
  const std::string field = rest_of(reference.path, 1);
  if (field == "rank") return found({.kind = Kind::kRank});
  if (field == "local_rank") return found({.kind = Kind::kLocalRank});
  if (field == "node_rank") return found({.kind = Kind::kNodeRank});
  if (field == "host") return found({.kind = Kind::kHost});
  if (field == "host_name") return found({.kind = Kind::kHostName});
  if (field.starts_with("port.")) return read_port(reference.path, 2, mesh, {.kind = Kind::kPort});
  return fault(ReferenceFault::Kind::kUnknownField, field, {},
               {"rank", "local_rank", "node_rank", "host", "host_name", "port.NAME"});
}

ReadReference read_mesh(const Reference& reference, const JobSpec& spec, MeshId reader) {
  using Kind = ReferenceMeaning::Kind;
  const std::string name = reference.path.size() > 1 ? reference.path[1] : std::string();
  std::vector<std::string> known;
  std::optional<MeshId> meant;
  for (std::uint32_t i = 0; i < spec.meshes.size(); ++i) {
    if (spec.meshes[i].name == name) meant = MeshId(i);
    known.push_back(spec.meshes[i].name);
  }
  if (!meant) return fault(ReferenceFault::Kind::kUnknownMesh, name, {}, std::move(known));
  const std::string field = rest_of(reference.path, 2);
  if (field == "host") return found({.kind = Kind::kHost, .mesh = meant});
  if (field == "host_name") return found({.kind = Kind::kHostName, .mesh = meant});
  if (!field.starts_with("port.")) {
    return fault(ReferenceFault::Kind::kUnknownField, field, name, {"host", "host_name", "port.NAME"});
  }
  ReadReference port = read_port(reference.path, 3, spec.meshes[meant->value()], {.kind = Kind::kPort, .mesh = meant});
  if (!port.meaning) return port;
  // A number that the spec writes is known before anything is started.
  if (spec.meshes[meant->value()].ports[port.meaning->port].fixed) return port;
  // The gangs of one mesh do not wait for each other.
  const bool known_by_then = *meant == reader
                                 ? spec.meshes[reader.value()].gangs() == 1
                                 : !ring_of_dependencies(spec) && Stages(spec).starts_after(reader, *meant);
  return known_by_then ? port : fault(ReferenceFault::Kind::kNotYetStarted, field, name);
}

}  // namespace

ExpansionText parse_expansion(std::string_view text) {
  ExpansionText pieces;
  const auto literal = [&pieces](std::string_view bytes) {
    if (!bytes.empty()) pieces.push_back({.literal = std::string(bytes), .reference = std::nullopt});
  };
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = next_reference(text, at);
    if (begin == std::string_view::npos) break;
    literal(text.substr(at, begin - at));
    const std::size_t inside = begin + 2;
    const std::size_t end = text.find(')', inside);
    Reference reference{
        .path = split_at_points(text.substr(inside, end == std::string_view::npos ? end : end - inside)),
        .offset = begin,
        .length = (end == std::string_view::npos ? text.size() : end + 1) - begin,
        .closed = end != std::string_view::npos};
    at = begin + reference.length;
    pieces.push_back({.literal = {}, .reference = std::move(reference)});
  }
  literal(text.substr(at));
  return pieces;
}

bool has_references(std::string_view text) { return next_reference(text, 0) != std::string_view::npos; }

ReadReference read_reference(const Reference& reference, const JobSpec& spec, MeshId mesh) {
  if (!reference.closed) return fault(ReferenceFault::Kind::kNotClosed, rest_of(reference.path, 0));
  if (reference.path[0] == "self") return read_self(reference, spec.meshes[mesh.value()]);
  if (reference.path[0] == "mesh") return read_mesh(reference, spec, mesh);
  std::string name = rest_of(reference.path, 1);
  if (!is_variable_name(name)) return fault(ReferenceFault::Kind::kBadVariable, std::move(name));
  return found(
      {.kind = ReferenceMeaning::Kind::kVariable, .mesh = std::nullopt, .port = 0, .variable = std::move(name)});
}

CompiledText compile_expansion(std::string_view text, const JobSpec& spec, MeshId mesh) {
  CompiledText compiled;
  for (ExpansionPiece& piece : parse_expansion(text)) {
    std::optional<ReferenceMeaning> meaning;
    if (piece.reference) {
      meaning = read_reference(*piece.reference, spec, mesh).meaning;
      MONARCH_ASSERT_BECAUSE(meaning.has_value(), "the validator has refused every fault");
    }
    compiled.push_back({.literal = std::move(piece.literal), .meaning = std::move(meaning)});
  }
  return compiled;
}

std::string expand(const CompiledText& text, const std::function<std::string(const ReferenceMeaning&)>& value_of) {
  std::string out;
  for (const CompiledPiece& piece : text) out += piece.meaning ? value_of(*piece.meaning) : piece.literal;
  return out;
}

bool is_passed(const MeshSpec& mesh, std::string_view name) {
  return std::any_of(mesh.env_pass.begin(), mesh.env_pass.end(),
                     [name](std::string_view pattern) { return fits_variable(pattern, name); });
}

bool is_passed(const JobSpec& spec, std::string_view name) {
  return std::any_of(spec.meshes.begin(), spec.meshes.end(),
                     [name](const MeshSpec& mesh) { return is_passed(mesh, name); });
}

std::set<std::string> shell_variables(const JobSpec& spec) {
  std::set<std::string> names;
  const auto collect = [&names](std::string_view text) {
    for (const ExpansionPiece& piece : parse_expansion(text)) {
      if (piece.reference && piece.reference->path[0] == "env") names.insert(rest_of(piece.reference->path, 1));
    }
  };
  for (const MeshSpec& mesh : spec.meshes) {
    for (const std::string& part : mesh.program) collect(part);
    for (const std::string& part : mesh.wrap) collect(part);
    for (const auto& [name, value] : mesh.env) collect(value);
    if (mesh.workdir) collect(*mesh.workdir);
  }
  return names;
}

}  // namespace monarch
