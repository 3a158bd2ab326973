#pragma once

// Small specs as text, for tests of the spec. Thread: any.

#include <string>
#include <string_view>
#include <vector>

#include "supervisor/spec/spec.h"
#include "transport/base/text.h"

namespace monarch {

inline SpecOutcome load_text(std::string_view yaml) {
  return load_spec({.name = "spec.yaml", .text = std::string(yaml), .directory = "/home/u/job"});
}

// A whole spec around the lines of one mesh `m`, each indented by four spaces here.
inline std::string around_mesh(std::string_view mesh_lines, std::string_view top_lines = "") {
  return text("version: 1\njob: j\n", top_lines, "meshes:\n  m:\n", mesh_lines);
}

inline std::string around_top(std::string_view top_lines) {
  return around_mesh("    dims: {host: 2, gpu: 4}\n    program: [/bin/true]\n", top_lines);
}

// "E0107 14:3", one for each diagnostic.
inline std::vector<std::string> ids_and_places(const SpecOutcome& outcome) {
  std::vector<std::string> out;
  for (const Diagnostic& d : outcome.diagnostics) out.push_back(text(d.id, " ", d.line, ":", d.column));
  return out;
}

inline std::vector<std::string> ids(const SpecOutcome& outcome) {
  std::vector<std::string> out;
  for (const Diagnostic& d : outcome.diagnostics) out.push_back(d.id);
  return out;
}

}  // namespace monarch
