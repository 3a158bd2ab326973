#include "supervisor/spec/job/build_actors.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "supervisor/spec/yaml/scalar.h"
#include "supervisor/spec/yaml/values.h"
#include "supervisor/spec/yaml/yaml_tree.h"
#include "transport/base/json.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/text.h"
#include "transport/messages/rank.h"

namespace monarch {

namespace {

constexpr const char* kPythonRank[] = {"python3", "-m", "monarch.rank"};
constexpr std::size_t kMostManifestBytes = 96U << 10U;  // a variable has at most 128 KiB: execve(2)

template <class Number>
std::optional<Json> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional<Json>(number) : std::nullopt;
}

// A number as YAML's core schema has it; what begins with a 0 and is no 0 may be a name, and stays a text.
std::optional<Json> core_schema_number(std::string_view text) {
  const std::string_view digits = text.substr(!text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0);
  const auto is_digit = [&](std::size_t at) {
    return digits.size() > at && std::isdigit(static_cast<unsigned char>(digits[at])) != 0;
  };
  const bool begins = is_digit(0) || (digits.starts_with('.') && is_digit(1));
  if (!begins || (digits[0] == '0' && is_digit(1))) return std::nullopt;
  const std::string_view whole = text[0] == '+' ? digits : text;
  if (auto integer = whole_number<std::int64_t>(whole)) return integer;
  if (auto large = whole_number<std::uint64_t>(whole)) return large;
  return whole_number<double>(whole);
}

// A value as YAML's core schema reads it: what is quoted is a text.
Json json_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNothing:
    case YamlNode::Kind::kRefused: return nullptr;
    case YamlNode::Kind::kScalar: {
      if (node.quoted) return node.text;
      if (const auto boolean = parse_bool(node).value) return *boolean;
      if (auto number = core_schema_number(node.text)) return std::move(*number);
      return node.text;
    }
    case YamlNode::Kind::kList: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.append(json_of(item));
      return list;
    }
    case YamlNode::Kind::kMap: {
      Json map = Json::object();
      for (std::size_t i = 0; i < node.keys.size(); ++i) map.set(node.keys[i].text, json_of(node.items[i]));
      return map;
    }
  }
  return nullptr;
}

YamlNode list_node(std::string only, Place place) {
  YamlNode list{.kind = YamlNode::Kind::kList, .place = place};
  list.items.push_back(scalar_node(std::move(only), place));
  return list;
}

void append_unless_written(YamlNode& map, const char* key, YamlNode value) {
  if (map.find(key) == nullptr) append_key(map, key, std::move(value));
}

YamlNode& map_below(YamlNode& map, const char* key, Place place) {
  append_unless_written(map, key, YamlNode{.kind = YamlNode::Kind::kMap, .place = place});
  YamlNode& below = *map.find(key);
  if (!below.is(YamlNode::Kind::kMap)) below = YamlNode{.kind = YamlNode::Kind::kMap, .place = place};
  return below;
}

void remove_key(YamlNode& map, std::string_view key) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text != key) continue;
    map.keys.erase(map.keys.begin() + static_cast<std::ptrdiff_t>(i));
    map.items.erase(map.items.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

class ActorPrograms {
 public:
  ActorPrograms(const YamlNode& root, const JobSpec& job, Report& report)
      : root_(root), job_(job), report_(report), controlled_(value_of(&root_, "controller") != nullptr) {}

  std::optional<YamlNode> make() {
    YamlNode* meshes = root_.find("meshes");
    if (meshes == nullptr || !meshes->is(YamlNode::Kind::kMap)) return std::nullopt;
    bool any = controlled_;
    for (std::size_t i = 0; i < meshes->items.size(); ++i) {
      if (!has_actors_alone(meshes->items[i])) continue;
      any = true;
      make_program(meshes->keys[i].text, meshes->items[i]);
    }
    if (!any) return std::nullopt;
    if (controlled_) add_controller(*meshes);
    return std::move(root_);
  }

 private:
  // A mesh that has something else to run, too, is told so where its program is built.
  static bool has_actors_alone(const YamlNode& mesh) {
    const YamlNode* actors = value_of(&mesh, "actors");
    return actors != nullptr && actors->is(YamlNode::Kind::kMap) && value_of(&mesh, "program") == nullptr;
  }

  // As the ranks find it; nothing: reported.
  std::optional<std::string> path_of(const YamlNode& file, const std::string& key) {
    const std::filesystem::path written = file.text;
    if (file.text.starts_with('~')) {
      report_.error("E0210", file.place,
                    {.message = text("`", key, "` starts with `~`"),
                     .label = "is not expanded",
                     .help = "write the whole path, or one relative to the spec's folder"});
      return std::nullopt;
    }
    if (written.is_absolute()) return written.lexically_normal().string();
    const bool is_shipped = job_.workspace && !job_.launch.facts().one_machine;
    if (!is_shipped) return (std::filesystem::path(plugin_folder(job_)) / written).lexically_normal().string();
    const std::string below = written.lexically_normal().string();
    if (below != ".." && !below.starts_with("../")) return below;
    report_.error("E0319", file.place,
                  {.message = text("`", key, "` lies outside of the workspace"),
                   .label = "counted from the workspace's folder",
                   .help = "write a whole path, or let `workspace.path` name a folder that holds it"});
    return std::nullopt;
  }

  // Of an actor or a controller; `entry` is the key of what in the plugin it is.
  Json part_of(const YamlNode& node, const std::string& path, const char* entry) {
    Json part = Json::object();
    const YamlNode* plugin = value_of(&node, "plugin");
    if (plugin == nullptr || !plugin->is(YamlNode::Kind::kScalar)) return part;
    const auto where = path_of(*plugin, path + ".plugin");
    part.set("plugin", where.value_or(""));
    if (const auto hash = text_of(&node, "sha256")) part.set("sha256", *hash);
    part.set(entry, text_of(&node, entry).value_or(""));
    if (const auto args = args_of(node, path)) part.set("args", *args);
    return part;
  }

  std::optional<Json> args_of(const YamlNode& node, const std::string& path) {
    const YamlNode* args = value_of(&node, "args");
    if (args == nullptr) return std::nullopt;
    if (!args->is(YamlNode::Kind::kMap)) {
      report_.error("E0210", args->place,
                    {.message = text("`", path, ".args` is no map"),
                     .label = "values by name are needed",
                     .help = "`args: {steps: 100}` would work"});
    }
    return json_of(*args);
  }

  // Whether they are of Python; nothing: reported, since one is of nothing or of two things, or they are of both kinds.
  std::optional<bool> language_of(const YamlNode& actors, const std::string& mesh) {
    const YamlKey* cpp = nullptr;
    const YamlKey* python = nullptr;
    for (std::size_t i = 0; i < actors.keys.size(); ++i) {
      if (!actors.items[i].is(YamlNode::Kind::kMap)) return std::nullopt;  // said by the schema
      const auto has = [&](const char* key) { return value_of(&actors.items[i], key) != nullptr ? 1 : 0; };
      if (has("plugin") + has("python") + has("module") != 1) {
        report_.error("E0106", actors.keys[i].place,
                      {.message = text("`meshes.", mesh, ".actors.", actors.keys[i].text, "` is of nothing, or of two"),
                       .label = "exactly one of `plugin`, `python` and `module` is needed",
                       .help = "`{python: scorer.py, class: Scorer}` would work"});
        return std::nullopt;
      }
      (has("plugin") == 1 ? cpp : python) = &actors.keys[i];
    }
    if (cpp == nullptr || python == nullptr) return python != nullptr;
    report_.error("E0106", python->place,
                  {.message = text("mesh `", mesh, "` has actors of C++ and of Python"),
                   .label = text("is Python, and `", cpp->text, "` is not"),
                   .help = "ranks are one or the other: split it into two meshes, `hosts: {like: ...}`"});
    return std::nullopt;
  }

  // Words of a program are expanded: nothing in these is a reference.
  std::string plain(std::string word, Place place) {
    if (word.find("$(") != std::string::npos) {
      report_.error("E0210", place, {.message = text("`", word, "` has `$(` in it"), .label = "would be a reference"});
    }
    return word;
  }

  // `python3 -m monarch.rank` with these actors.
  YamlNode python_program(const YamlNode& actors, const std::string& mesh, Place place) {
    YamlNode words{.kind = YamlNode::Kind::kList, .place = place};
    const auto add = [&](std::string word) { words.items.push_back(scalar_node(std::move(word), place)); };
    for (const char* word : kPythonRank) add(word);
    for (std::size_t i = 0; i < actors.keys.size(); ++i) {
      const YamlNode& actor = actors.items[i];
      const std::string path = text("meshes.", mesh, ".actors.", actors.keys[i].text);
      add("--actor");
      add(actors.keys[i].text);
      if (const YamlNode* file = value_of(&actor, "python")) {
        add("--file");
        add(plain(path_of(*file, path + ".python").value_or(""), file->place));
      } else {
        add("--module");
        add(plain(text_of(&actor, "module").value_or(""), place));
      }
      add("--class");
      add(plain(text_of(&actor, "class").value_or(""), place));
      if (const auto args = args_of(actor, path)) {
        add("--args");
        add(without_references(to_json(*args)));
      }
      if (const YamlNode* hash = value_of(&actor, "sha256")) {
        report_.error("E0210", hash->place,
                      {.message = text("`", path, ".sha256` is of no plugin"),
                       .label = "is of a plugin's file",
                       .help = "leave it out"});
      }
    }
    return words;
  }

  // In the texts of JSON alone there is a `$`.
  static std::string without_references(std::string words) {
    for (std::size_t at = words.find('$'); at != std::string::npos; at = words.find('$', at + 1)) {
      words.replace(at, 1, "\\u0024");
    }
    return words;
  }

  static Json dims_of(const YamlNode& mesh) {
    Json dims = Json::object();
    const YamlNode* written = value_of(&mesh, "dims");
    for (std::size_t i = 0; written != nullptr && i < written->keys.size(); ++i) {
      dims.set(written->keys[i].text, std::uint64_t{integer_of(written, written->keys[i].text).value_or(1)});
    }
    return dims;
  }

  void set_manifest(YamlNode& mesh, const std::string& path, const Json& manifest, Place place) {
    std::string words = without_references(to_json(manifest));
    if (words.size() > kMostManifestBytes) {
      report_.error("E0210", place,
                    {.message = text("`", path, "` has ", words.size(), " bytes with its args"),
                     .label = text("at most ", kMostManifestBytes, " fit"),
                     .help = "a file of the workspace holds more: let args name it"});
      return;
    }
    append_key(map_below(mesh, "env", place), std::string(kActorsVariable), scalar_node(std::move(words), place));
  }

  void make_program(const std::string& name, YamlNode& mesh) {
    const YamlNode& actors = *mesh.find("actors");
    const Place place = mesh.find_key("actors")->place;
    const std::optional<bool> is_python = language_of(actors, name);
    YamlNode program = list_node(std::string(kActorProgram), place);
    if (is_python && *is_python) {
      program = python_program(actors, name, place);
    } else if (is_python) {
      Json parts = Json::object();
      for (std::size_t i = 0; i < actors.keys.size(); ++i) {
        const std::string path = text("meshes.", name, ".actors.", actors.keys[i].text);
        parts.set(actors.keys[i].text, part_of(actors.items[i], path, "class"));
      }
      set_manifest(mesh, text("meshes.", name, ".actors"),
                   Json::object({{"dims", dims_of(mesh)}, {"actors", std::move(parts)}}), place);
    }
    remove_key(mesh, "actors");
    append_key(mesh, "program", std::move(program));
    append_unless_written(mesh, "ready", scalar_node("notify", place));
    append_unless_written(mesh, "gang", scalar_node("each", place));
    if (controlled_) append_unless_written(mesh, "sidecar", scalar_node("true", place));
  }

  void add_controller(YamlNode& meshes) {
    YamlNode mesh = *root_.find("controller");
    const Place place = root_.find_key("controller")->place;
    if (const YamlKey* taken = meshes.find_key(kControllerMesh)) {
      report_.error("E0335", taken->place,
                    {.message = "a mesh is called `controller`, as the controller's own is",
                     .label = "is taken",
                     .help = "call the mesh otherwise"});
      return;
    }
    if (!mesh.is(YamlNode::Kind::kMap) || meshes.keys.empty()) return;
    check_one_thing_to_run(mesh, place);
    YamlNode one{.kind = YamlNode::Kind::kMap, .place = place};
    append_key(one, "one", scalar_node("1", place));
    if (value_of(&mesh, "program") == nullptr) {
      const Json part = part_of(mesh, std::string(kControllerMesh), "entry");
      set_manifest(mesh, std::string(kControllerMesh),
                   Json::object({{"dims", Json::object({{"one", 1U}})}, {"controller", part}}), place);
      append_key(mesh, "program", list_node(std::string(kActorProgram), place));
    }
    for (const char* key : {"plugin", "entry", "args", "sha256"}) remove_key(mesh, key);
    append_key(mesh, "dims", std::move(one));
    YamlNode hosts{.kind = YamlNode::Kind::kMap, .place = place};
    append_key(hosts, "like", scalar_node(meshes.keys.front().text, place));
    append_key(mesh, "hosts", std::move(hosts));
    // What it knew of its calls is gone with it: it is started again where that is asked for.
    YamlNode& restart = map_below(map_below(mesh, "supervision", place), "restart", place);
    append_unless_written(restart, "max", scalar_node("0", place));
    append_key(meshes, std::string(kControllerMesh), std::move(mesh));
    meshes.keys.back().place = place;
  }

  void check_one_thing_to_run(const YamlNode& controller, Place place) {
    const bool plugin = value_of(&controller, "plugin") != nullptr;
    const bool program = value_of(&controller, "program") != nullptr;
    const bool entry = value_of(&controller, "entry") != nullptr;
    if (plugin != program && plugin == entry) return;
    report_.error(
        "E0106", place,
        {.message = text("`controller` has ", plugin && program ? "more than one thing" : "nothing", " to run"),
         .label = "either `plugin` and `entry`, or `program` is needed",
         .help = "`controller: {plugin: ./libdrive.so, entry: drive}` would work"});
  }

  YamlNode root_;
  const JobSpec& job_;
  Report& report_;
  const bool controlled_;
};

}  // namespace

bool is_actor_program(const std::vector<std::string>& program) {
  if (program.empty()) return false;
  if (program.front() == kActorProgram) return true;
  return program.size() > 2 && program[1] == kPythonRank[1] && program[2] == kPythonRank[2];
}

std::string plugin_folder(const JobSpec& job) { return job.workspace ? job.workspace->path : job.directory; }

std::optional<YamlNode> with_actor_programs(const YamlNode& root, const JobSpec& job, Report& report) {
  return ActorPrograms(root, job, report).make();
}

}  // namespace monarch
