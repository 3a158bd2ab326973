#include "supervisor/spec/flag_text.h"
#include "supervisor/spec/schema/launcher_spec.h"

#include <algorithm>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

Place at(std::size_t begin, std::size_t length, std::uint32_t number) {
  return {1, static_cast<std::uint32_t>(begin + 1), static_cast<std::uint32_t>(std::max<std::size_t>(1, length)),
          number};
}

YamlNode map_of(YamlKey key, YamlNode value) {
  YamlNode map{.kind = YamlNode::Kind::kMap, .place = key.place};
  map.keys.push_back(std::move(key));
  map.items.push_back(std::move(value));
  return map;
}

// The keys of "meshes.trainer.dims.gpu=", and where the value behind the `=` starts.
class PathReader {
 public:
  PathReader(const FlagText& flag, Report& report, std::uint32_t number)
      : text_(flag.text), next_(flag.begin), report_(report), number_(number) {}

  bool read() {
    while (true) {
      if (!read_key()) return false;
      if (keys_.size() > limits::kSpecDepth) {
        return refuse("no key of a spec lies that deep", "`monarch explain` lists the keys");
      }
      if (rest().starts_with('.')) {
        ++next_;
        continue;
      }
      if (!rest().starts_with('=')) return refuse("neither `.` nor `=`", kForm);
      ++next_;
      return true;
    }
  }

  const std::vector<YamlKey>& keys() const { return keys_; }
  std::size_t value_begin() const { return next_; }

 private:
  static constexpr std::string_view kForm = "it is written `--set supervision.lease=8s`";

  std::string_view rest() const { return std::string_view(text_).substr(next_); }

  bool read_key() {
    const char first = rest().empty() ? '\0' : rest().front();
    if (first == '"' || first == '\'') {
      const std::size_t end = rest().find(first, 1);
      if (end == std::string_view::npos) return refuse("these quotes are not closed", "close them");
      keys_.push_back({std::string(rest().substr(1, end - 1)), at(next_, end + 1, number_)});
      next_ += end + 1;
      return true;
    }
    const std::size_t length = std::min(rest().find_first_of(".=[]\"' \t\r\n"), rest().size());
    if (length == 0) {
      const bool ended = rest().empty();
      return refuse(ended ? "the path of a key, `=` and a value are needed" : "no key starts like this", kForm);
    }
    keys_.push_back({std::string(rest().substr(0, length)), at(next_, length, number_)});
    next_ += length;
    if (rest().starts_with('[')) {
      return refuse("an item of a list cannot be set alone", "set the whole list: `program=[python3, train.py]`");
    }
    if (rest().empty()) return refuse("no `=` and no value behind this", kForm);
    return true;
  }

  bool refuse(std::string_view label, std::string_view help) {
    report_.error("E0015", at(std::min(next_, text_.size()), 1, number_),
                  {.message = "`--set` is not PATH=VALUE", .label = std::string(label), .help = std::string(help)});
    return false;
  }

  const std::string& text_;
  std::size_t next_;
  Report& report_;
  std::uint32_t number_;
  std::vector<YamlKey> keys_;
};

bool needs_quotes(std::string_view word) {
  return word.empty() || word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./:=,+@%") != std::string_view::npos;
}

std::string as_typed(const std::string& word) { return needs_quotes(word) ? text("'", printable(word), "'") : word; }

std::vector<std::string> names_in(const YamlNode& map) {
  std::vector<std::string> names;
  for (const YamlKey& key : map.keys) names.push_back(key.text);
  return names;
}

bool has_key(const YamlNode& map, const YamlKey& key, std::string_view what, Report& report) {
  if (!map.is(YamlNode::Kind::kMap) || map.find(key.text) != nullptr) return true;
  const std::vector<std::string> names = names_in(map);
  const auto near = nearest(key.text, names);
  report.error("E0213", key.place,
               {.message = text("the spec has no ", what, " `", key.text, "`"),
                .label = text("`--set` adds no ", what),
                .help = near ? text("did you mean `", *near, "`?") : text("one of: ", join(names, ", "))});
  return false;
}

// The program that gets the arguments; nullptr: reported.
YamlNode* program_of(YamlNode& root, const ExtraArguments& extra, Report& report, Place place) {
  const auto item = [](YamlNode* map, std::string_view key) { return map == nullptr ? nullptr : map->find(key); };
  YamlNode* meshes = item(&root, "meshes");
  if (meshes == nullptr || !meshes->is(YamlNode::Kind::kMap) || meshes->items.empty())
    return nullptr;  // reported later
  const std::vector<std::string> names = names_in(*meshes);
  if (extra.mesh.empty() && names.size() > 1) {
    report.error("E0016", place,
                 {.message = text("whose arguments are these? The spec has ", names.size(), " meshes"),
                  .label = "",
                  .help = text("--mesh picks one of ", join(names, ", "))});
    return nullptr;
  }
  const std::string name = extra.mesh.empty() ? names.front() : extra.mesh;
  YamlNode* mesh = meshes->find(name);
  if (mesh == nullptr) {
    const auto near = nearest(name, names);
    report.error(
        "E0016", place,
        {.message = text("the spec has no mesh `", name, "` for these arguments"),
         .label = "",
         .help = near ? text("did you mean `--mesh ", *near, "`?") : text("--mesh picks one of ", join(names, ", "))});
    return nullptr;
  }
  YamlNode* program = item(mesh, "program");
  if (program != nullptr && !program->items.empty()) return program;
  if (program == nullptr) {
    report.error("E0016", place,
                 {.message = text("mesh `", name, "` has no program that could take these arguments"), .label = ""});
  }
  return nullptr;  // an empty program is reported later
}

}  // namespace

std::string_view flag_value(const FlagText& flag) { return std::string_view(flag.text).substr(flag.begin); }

std::optional<Setting> read_setting(const FlagText& flag, Report& report, std::uint32_t number) {
  PathReader path(flag, report, number);
  if (!path.read()) return std::nullopt;
  const std::size_t begin = path.value_begin();
  const std::string_view value = std::string_view(flag.text).substr(begin);
  const std::size_t first = value.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || value[first] == '#') {
    report.error("E0015", at(begin == flag.text.size() ? begin - 1 : begin, 1, number),
                 {.message = "`--set` is not PATH=VALUE",
                  .label = first == std::string_view::npos ? "no value behind this" : "YAML takes this for a comment",
                  .help = first == std::string_view::npos ? "an empty text is written `\"\"`" : "put it in quotes"});
    return std::nullopt;
  }
  // Blanks in front: so the reader's places are those of the flag.
  std::optional<YamlNode> node = read_yaml(text(std::string(begin, ' '), value), report, number);
  if (!node) return std::nullopt;
  return Setting{.path = path.keys(), .value = std::move(*node)};
}

bool reaches(const YamlNode& root, const Setting& setting, Report& report) {
  if (setting.path.size() < 3 || setting.path[0].text != "meshes") return true;
  const YamlNode* meshes = root.find("meshes");
  if (meshes == nullptr || !has_key(*meshes, setting.path[1], "mesh", report)) return meshes == nullptr;
  const YamlNode* mesh = meshes->find(setting.path[1].text);
  const YamlNode* dims =
      mesh == nullptr ? nullptr : mesh->find("dims");  // `meshes` may be no map, which is reported later
  if (setting.path.size() < 4 || setting.path[2].text != "dims" || dims == nullptr) return true;
  return has_key(*dims, setting.path[3], "dimension", report);
}

YamlNode tree_of(Setting setting) {
  YamlNode node = std::move(setting.value);
  for (auto key = setting.path.rbegin(); key != setting.path.rend(); ++key) node = map_of(*key, std::move(node));
  return node;
}

std::optional<YamlNode> read_launch(const FlagText& flag, Report& report, std::uint32_t number) {
  const std::string_view value = flag_value(flag);
  const std::size_t colon = std::min(value.find(':'), value.size());
  const std::string launcher(value.substr(0, colon));
  const Place place = at(flag.begin, value.size(), number);
  const LauncherSpec* spec = find_launcher_spec(launcher);
  if (spec == nullptr) {
    std::vector<std::string> names;
    std::vector<std::string> forms;
    for (const LauncherSpec* known : launcher_specs()) {
      names.emplace_back(known->name);
      forms.emplace_back(known->flag_words);
    }
    const auto near = nearest(launcher, names);
    report.error("E0205", place,
                 {.message = text("`--launch` cannot be `", value, "`"),
                  .label = join(forms, ", "),
                  .help = near ? text("did you mean `", *near, "`?") : ""});
    return std::nullopt;
  }
  if (!spec->flag_counts && colon == value.size()) {
    report.error("E0101", place,
                 {.message = text("`--launch ", launcher, "` names no hosts"),
                  .label = "",
                  .help = text("`--launch '", launcher, ":node[01-04]'` runs it on these; `--set launch.", launcher,
                               ".hosts=` changes them alone")});
    return std::nullopt;
  }
  YamlNode keys{.kind = YamlNode::Kind::kMap, .place = place};
  if (colon < value.size()) {
    const std::size_t begin = flag.begin + colon + 1;
    const std::string_view hosts = value.substr(colon + 1);
    keys =
        map_of({std::string(spec->flag_key), at(flag.begin, value.size(), number)},
               {.kind = YamlNode::Kind::kScalar, .place = at(begin, hosts.size(), number), .text = std::string(hosts)});
  }
  return map_of({"launch", place}, map_of({launcher, place}, std::move(keys)));
}

FlagText arguments_text(const std::vector<std::string>& arguments) {
  FlagText flag{.text = "--", .begin = 3};
  for (const std::string& word : arguments) flag.text += " " + as_typed(word);
  return flag;
}

void append_arguments(YamlNode& root, const ExtraArguments& extra, Report& report, std::uint32_t number) {
  const std::string whole = arguments_text(extra.words).text;
  YamlNode* program = program_of(root, extra, report, at(0, whole.size(), number));
  std::size_t begin = 3;
  for (const std::string& word : extra.words) {
    const std::size_t length = as_typed(word).size();
    const Place place = at(begin, length, number);
    begin += length + 1;
    if (program == nullptr) continue;
    program->items.push_back({.kind = YamlNode::Kind::kScalar, .place = place, .quoted = true, .text = word});
  }
}

}  // namespace monarch
