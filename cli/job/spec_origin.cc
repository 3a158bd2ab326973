#include "cli/job/spec_origin.h"

#include <filesystem>
#include <utility>

#include "supervisor/client/start_supervisor.h"
#include "supervisor/spec/spec_diff.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kOriginBytes = 8U << 20U;  // flags of a merged spec, each byte of which may be escaped

Json flag_json(const FlagText& flag) {
  return Json::object({{"text", flag.text}, {"begin", flag.begin}, {"from", flag.from}});
}

std::optional<FlagText> parse_flag(const Json& json) {
  const auto text = json.get_string("text");
  const auto begin = json.get_uint64("begin");
  if (!text || !begin || *begin > text->size()) return std::nullopt;
  return FlagText{.text = *text, .begin = *begin, .from = json.get_string("from").value_or("command line")};
}

std::vector<std::string> texts_of(const Json* array) {
  std::vector<std::string> out;
  if (array == nullptr) return out;
  for (const Json& item : array->items()) out.push_back(item.as_string().value_or(""));
  return out;
}

std::string path_of(const SpecSource& source) {
  return (std::filesystem::path(source.directory) / std::filesystem::path(source.name).filename()).string();
}

}  // namespace

std::string write_origin(const SpecParts& parts) {
  Json files = Json::array();
  for (const SpecSource& file : parts.files) files.append(path_of(file));
  Json settings = Json::array();
  for (const FlagText& setting : parts.settings) settings.append(flag_json(setting));
  Json origin = Json::object({{"v", 1}, {"files", std::move(files)}, {"settings", std::move(settings)}});
  if (parts.launch) origin.set("launch", flag_json(*parts.launch));
  if (parts.arguments) {
    Json words = Json::array();
    for (const std::string& word : parts.arguments->words) words.append(word);
    origin.set("arguments", Json::object({{"words", std::move(words)}, {"mesh", parts.arguments->mesh}}));
  }
  return to_json(origin) + "\n";
}

std::optional<SpecOrigin> parse_origin(const std::string& json) {
  const auto parsed = parse_json(json, {.bytes = kOriginBytes});
  if (!parsed.ok()) return std::nullopt;
  SpecOrigin origin{.files = texts_of(parsed->find("files")), .flags = {}};
  if (origin.files.empty()) return std::nullopt;
  if (const Json* settings = parsed->find("settings")) {
    for (const Json& setting : settings->items()) {
      auto flag = parse_flag(setting);
      if (!flag) return std::nullopt;
      origin.flags.settings.push_back(std::move(*flag));
    }
  }
  if (const Json* launch = parsed->find("launch")) origin.flags.launch = parse_flag(*launch);
  if (const Json* arguments = parsed->find("arguments")) {
    origin.flags.arguments =
        ExtraArguments{.words = texts_of(arguments->find("words")), .mesh = arguments->get_string("mesh").value_or("")};
  }
  return origin;
}

std::optional<SpecOrigin> origin_of(const JobView& view) {
  const auto json = view.directory().directory.read_file(kSpecOriginFile, kOriginBytes);
  return json.ok() ? parse_origin(*json) : std::nullopt;
}

std::optional<std::string> spec_drift(const JobView& view, const JobSpec& running) {
  std::optional<SpecOrigin> origin = origin_of(view);
  if (!origin) return std::nullopt;
  const std::string copy = text("the job goes on with its own copy, ", view.path(), "/", kSpecFile);
  const std::string name = printable(origin->files.front());
  SpecParts parts = std::move(origin->flags);
  for (const std::string& path : origin->files) {
    auto source = read_spec_file(path, Duration::zero());
    if (!source.ok()) return text(source.error().message, "; ", copy);
    parts.files.push_back(std::move(*source));
  }
  SpecSurroundings around = users_surroundings();
  // Whoever asks need not be where the job was started: its nodes are the job's.
  const auto& given = running.launch.facts().allocation;
  around.find_allocation = [given]() -> Result<std::optional<Allocation>> { return given; };
  const SpecOutcome now = load_spec(parts, around);
  if (!now.loaded) return text(name, " is no longer a valid spec; ", copy);
  if (now.loaded->spec == running) return std::nullopt;
  const auto before = view.spec_text();
  const std::string changes = before.ok() ? changes_text(spec_changes(*before, now.loaded->text)) : "";
  return text(name, " says something else by now", changes.empty() ? "" : text(" (", changes, ")"), "; ", copy);
}

}  // namespace monarch
