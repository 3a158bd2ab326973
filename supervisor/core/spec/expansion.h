#pragma once

// Expansion: $(self.rank), $(self.local_rank), $(self.node_rank), $(self.host), $(self.host_name), $(self.port.NAME),
// $(mesh.MESH.host), $(mesh.MESH.host_name), $(mesh.MESH.port.NAME) and $(env.NAME) in a text of a spec. A text is
// parsed once and expanded for each rank. Only these prefixes are meant: a shell's `$(hostname)`, and `$(` alone, stay
// as they are. There is no way to escape one, because nothing else starts so.
//
// The validator has held every reference against the spec: what is compiled here has no faults.
//
// Thread: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/ids.h"

namespace monarch {

// What stands between `$(` and `)`, split at its points: {"mesh", "store", "port", "http"}.
struct Reference {
  std::vector<std::string> path;
  std::size_t offset = 0;  // of its `$`
  std::size_t length = 0;  // with its `)`; without one, up to the end of the text
  bool closed = true;
};

struct ExpansionPiece {
  std::string literal;                 // as it is
  std::optional<Reference> reference;  // instead
};
using ExpansionText = std::vector<ExpansionPiece>;

ExpansionText parse_expansion(std::string_view text);
bool has_references(std::string_view text);

// What a reference stands for, once it is known to be right.
struct ReferenceMeaning {
  enum class Kind : std::uint8_t { kRank, kLocalRank, kNodeRank, kHost, kHostName, kPort, kVariable };
  Kind kind = Kind::kRank;
  std::optional<MeshId> mesh;  // rank 0 of it; nothing: the rank itself
  std::size_t port = 0;        // kPort: index into the mesh's ports
  std::string variable;        // kVariable
};

// What is wrong with a reference: what was written, and what would have been right there.
struct ReferenceFault {
  enum class Kind : std::uint8_t {
    kNotClosed,
    kUnknownField,  // `word` is none of `known`
    kUnknownMesh,
    kUnknownPort,    // `word` is no port of `mesh`
    kBadVariable,    // `word` is not the name of an environment variable
    kNotYetStarted,  // a port of a mesh that may be started later
  };
  Kind kind = Kind::kNotClosed;
  std::string word;
  std::string mesh;
  std::vector<std::string> known;
};

struct ReadReference {
  std::optional<ReferenceMeaning> meaning;  // else:
  ReferenceFault fault;
};

// As it is read in a text of `mesh`.
ReadReference read_reference(const Reference& reference, const JobSpec& spec, MeshId mesh);

// A text whose references are all right, ready to be expanded many times.
struct CompiledPiece {
  std::string literal;
  std::optional<ReferenceMeaning> meaning;  // instead
};
using CompiledText = std::vector<CompiledPiece>;

CompiledText compile_expansion(std::string_view text, const JobSpec& spec, MeshId mesh);

// Values go in as they are; nothing of them is expanded again.
std::string expand(const CompiledText& text, const std::function<std::string(const ReferenceMeaning&)>& value_of);

// The names of $(env.NAME) in any text of the job that is expanded.
std::set<std::string> shell_variables(const JobSpec& spec);

// Whether the mesh's `env_pass` names a variable of the submitting shell, as it is or by its beginning.
bool is_passed(const MeshSpec& mesh, std::string_view name);
bool is_passed(const JobSpec& spec, std::string_view name);  // any mesh's

}  // namespace monarch
