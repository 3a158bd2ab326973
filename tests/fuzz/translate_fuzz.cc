// `monarch init --from`: whatever the line is, it is refused with a known id, or becomes a spec that reads back as one
// value per word, and is taken or refused by load_spec() as any other.

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/import/translation.h"
#include "supervisor/spec/spec.h"
#include "transport/base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string line(reinterpret_cast<const char*>(data), size);
  // A hostfile would be read: no file of this machine is the fuzzer's business.
  if (line.find("file") != std::string::npos || line.find("-f") != std::string::npos) return 0;
  const TranslatedLine translated = translate_line(line);
  if (const auto* complaint = std::get_if<Complaint>(&translated)) {
    MONARCH_ASSERT(find_error(complaint->id) != nullptr && !complaint->message.empty());
    for (const char c : complaint_text(*complaint, false)) {
      const auto byte = static_cast<unsigned char>(c);
      MONARCH_ASSERT(byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F));
    }
    return 0;
  }
  const auto& translation = std::get<Translation>(translated);
  const std::string spec = spec_of(translation, line);
  const SpecOutcome outcome = load_spec({.name = "fuzz.yaml", .text = spec, .directory = "/srv/job"});
  if (!outcome.loaded) return 0;
  const MeshSpec& mesh = outcome.loaded->spec.meshes.at(0);
  MONARCH_ASSERT(mesh.program.size() == translation.program.size());
  for (std::size_t i = 0; i < mesh.program.size(); ++i) MONARCH_ASSERT(mesh.program[i] == translation.program[i].text);
  for (const auto& [name, value] : mesh.env) {
    bool asked = false;
    for (const auto& [wanted, word] : translation.env) asked = asked || (wanted == name && word.text == value);
    for (const auto& [wanted, place] : translation.place) asked = asked || (wanted == name && place == value);
    for (const DefaultVariable& own : translation.defaults) asked = asked || (own.name == name && own.value == value);
    MONARCH_ASSERT(asked);
  }
  return 0;
}
