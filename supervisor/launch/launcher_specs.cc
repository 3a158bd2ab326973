// The part of the launchers that whoever reads a spec needs.

#include <algorithm>

#include "supervisor/launch/launchers.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "transport/base/text.h"

namespace monarch {

std::span<const LauncherSpec* const> launcher_specs() {
#define MONARCH_SPEC_OF(name) &name##_spec(),
  static const LauncherSpec* const kSpecs[] = {MONARCH_LAUNCHERS(MONARCH_SPEC_OF)};
#undef MONARCH_SPEC_OF
  return kSpecs;
}

const LauncherSpec* find_launcher_spec(std::string_view name) {
  const auto specs = launcher_specs();
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const auto* spec) { return spec->name == name; });
  return found == specs.end() ? nullptr : *found;
}

namespace {

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  for (const LauncherSpec* spec : launcher_specs()) names.emplace_back(spec->name);
  return names;
}

}  // namespace

const std::string& launcher_words() {
  static const std::string kWords = join(launcher_names(), "|");
  return kWords;
}

const std::string& launcher_list() {
  static const std::string kList = [] {
    std::vector<std::string> names = launcher_names();
    const std::string last = names.back();
    names.pop_back();
    return text(join(names, ", "), " and ", last);
  }();
  return kList;
}

}  // namespace monarch
