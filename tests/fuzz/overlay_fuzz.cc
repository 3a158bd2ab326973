// What lies over a spec: the first line of the bytes is taken for a `--set`, the second for a `--launch`, the third for
// an argument, and the rest for a second file. Either a job comes out whose merged text says the same (load_spec()
// asserts that), or faults.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "supervisor/spec/spec.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string, 3> lines;
  for (std::string& line : lines) {
    const std::size_t end = rest.find('\n');
    line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  SpecParts parts;
  parts.files.push_back({.name = "base.yaml",
                         .text = "version: 1\njob: fuzz\nmeshes:\n  m:\n    dims: {host: 2, gpu: 2}\n"
                                 "    program: [/bin/true]\n    env: {A: b}\n",
                         .directory = "/srv/job"});
  if (!rest.empty()) parts.files.push_back({.name = "over.yaml", .text = std::string(rest), .directory = "/srv"});
  if (!lines[0].empty()) parts.settings.push_back({.text = text("--set ", lines[0]), .begin = 6});
  if (!lines[1].empty()) parts.launch = FlagText{.text = text("--launch ", lines[1]), .begin = 9};
  if (!lines[2].empty()) parts.arguments = ExtraArguments{.words = {lines[2], "x"}, .mesh = ""};
  const SpecOutcome outcome = load_spec(parts);
  MONARCH_ASSERT(outcome.loaded.has_value() == outcome.diagnostics.empty());
  for (const char c : render(outcome)) {
    const auto byte = static_cast<unsigned char>(c);
    MONARCH_ASSERT(byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F));
  }
  return 0;
}
