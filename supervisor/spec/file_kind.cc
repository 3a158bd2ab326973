#include "supervisor/spec/file_kind.h"

#include "transport/base/text.h"

namespace monarch {

namespace {

struct KindWords {
  std::string_view called;
  std::string_view key;    // that no file of another kind has
  std::string_view other;  // that one may have that is not complete, where the other kind's is not there
  std::string_view takes;  // the commands
};

const KindWords& kind_words(FileKind kind) {
  static constexpr KindWords kSpec = {"a spec", "meshes", "launch",
                                      "`monarch run FILE` runs it, and `monarch drill --smoke FILE` drills it"};
  static constexpr KindWords kScenario = {"a scenario of a drill", "faults", "drill", "`monarch drill FILE` takes it"};
  return kind == FileKind::kSpec ? kSpec : kScenario;
}

const YamlKey* key_that_tells(const YamlNode& root, const KindWords& kind) {
  const YamlKey* const key = root.find_key(kind.key);
  return key != nullptr ? key : root.find_key(kind.other);
}

}  // namespace

bool refuse_other_kind(const YamlNode& root, FileKind wanted, Report& report) {
  if (!root.is(YamlNode::Kind::kMap)) return false;
  const KindWords& own = kind_words(wanted);
  const KindWords& other = kind_words(wanted == FileKind::kSpec ? FileKind::kScenario : FileKind::kSpec);
  const YamlKey* const tells = key_that_tells(root, other);
  if (tells == nullptr || key_that_tells(root, own) != nullptr) return false;
  report.error("E0110", tells->place,
               {.message = text("this is ", other.called, ", and ", own.called, " is needed here"),
                .label = text("a key of ", other.called),
                .help = std::string(other.takes)});
  return true;
}

}  // namespace monarch
