#include "worker/rank/rank_manifest.h"

#include <limits>

#include <monarch/codec.hpp>

#include "transport/base/json.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr JsonLimits kLimits{.bytes = 1U << 20U, .depth = 40};

void write(codec::Writer& writer, const Json& value) {
  if (value.is_object()) {
    writer.map(value.members().size());
    for (const auto& [key, each] : value.members()) {
      writer.string(key);
      write(writer, each);
    }
  } else if (value.is_array()) {
    writer.array(value.items().size());
    for (const Json& each : value.items()) write(writer, each);
  } else if (const auto boolean = value.as_bool()) {
    writer.boolean(*boolean);
  } else if (const auto positive = value.as_uint64()) {
    writer.unsigned_integer(*positive);
  } else if (const auto negative = value.as_int64()) {
    writer.signed_integer(*negative);
  } else if (const auto number = value.as_double()) {
    writer.real(*number);
  } else if (const auto text = value.as_string()) {
    writer.string(*text);
  } else {
    writer.nil();
  }
}

Result<RankManifest::Part> read_part(const std::string& name, const Json& json, std::string_view entry) {
  const auto text_of = [&](std::string_view key) { return json.get_string(key).value_or(""); };
  RankManifest::Part part{
      .name = name, .plugin = text_of("plugin"), .sha256 = text_of("sha256"), .entry = text_of(entry), .args = {}};
  if (part.plugin.empty() || part.entry.empty()) {
    return Error{ErrorCode::kInvalid, text("MONARCH_ACTORS: ", name, " has no plugin or no ", entry)};
  }
  const Json* args = json.find("args");
  if (args != nullptr && !args->is_null()) {
    codec::Writer writer;
    write(writer, *args);
    part.args = writer.take();
  }
  return part;
}

}  // namespace

Result<RankManifest> parse_rank_manifest(std::string_view json) {
  const auto parsed = parse_json(json, kLimits);
  if (!parsed) return Error{parsed.error().code, text("MONARCH_ACTORS: ", parsed.error().message)};
  RankManifest manifest;
  const Json* dims = parsed->find("dims");
  if (dims != nullptr) {
    for (const auto& [name, size] : dims->members()) {
      const std::uint64_t number = size.as_uint64().value_or(0);
      if (number == 0 || number > std::numeric_limits<std::uint32_t>::max()) {
        return Error{ErrorCode::kInvalid, text("MONARCH_ACTORS: dimension ", name, " has no size")};
      }
      manifest.dims.emplace_back(name, static_cast<std::uint32_t>(number));
    }
  }
  if (const Json* controller = parsed->find("controller")) {
    MONARCH_ASSIGN(manifest.controller, read_part("the controller", *controller, "entry"));
    return manifest;
  }
  const Json* actors = parsed->find("actors");
  if (actors == nullptr || !actors->is_object()) {
    return Error{ErrorCode::kInvalid, "MONARCH_ACTORS has neither actors nor a controller"};
  }
  for (const auto& [name, json_of_it] : actors->members()) {
    MONARCH_ASSIGN(RankManifest::Part part, read_part(name, json_of_it, "class"));
    manifest.actors.push_back(std::move(part));
  }
  return manifest;
}

std::string RankPlace::name() const { return text(mesh, '/', rank); }

Result<RankPlace> read_place(const std::function<const char*(const char* name)>& variable) {
  const auto missing = [](std::string_view name) {
    return Error{ErrorCode::kInvalid, text(name, " is not set: `monarch run` starts this program")};
  };
  RankPlace place;
  const std::pair<const char*, std::string*> texts[] = {
      {"MONARCH_MESH", &place.mesh}, {"MONARCH_HOST", &place.host}, {kPostVariable.data(), &place.post}};
  for (const auto& [name, value] : texts) {
    const char* const found = variable(name);
    if (found == nullptr || *found == '\0') return missing(name);
    *value = found;
  }
  const auto take = [&](const char* name, auto& number) {
    const char* const found = variable(name);
    std::string_view digits = found == nullptr ? "" : found;
    return take_number(digits, number) && digits.empty();
  };
  if (!take("MONARCH_RANK", place.rank)) return missing("MONARCH_RANK");
  if (!take("MONARCH_GENERATION", place.generation)) return missing("MONARCH_GENERATION");
  const char* const questions = variable(kQuestionsVariable.data());
  const std::string_view door = questions == nullptr ? "" : questions;
  if (door.ends_with(".s")) place.sockets = door.substr(0, door.size() - 1);
  const char* const cause = variable(kRestartCauseVariable.data());
  if (cause != nullptr) place.restart_cause = cause;
  return place;
}

}  // namespace monarch
