#include <algorithm>
#include <type_traits>
#include <utility>

#include "supervisor/client/link/viewer_json.h"
#include "supervisor/drill/core/measure_run.h"
#include "supervisor/drill/report/record_fields.h"
#include "supervisor/drill/report/record_json.h"
#include "supervisor/drill/report/report_json.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// The first thing that is wrong, with its place.
struct ReadTrouble {
  std::string place = "record";
  std::string what;

  bool none() const { return what.empty(); }
  void say(std::string words) {
    if (what.empty()) what = text(printable(place), " ", words);
  }
};

// For as long as it lives, what is read lies there.
class PlaceInside {
 public:
  PlaceInside(ReadTrouble& trouble, const std::string& step) : trouble_(trouble), before_(trouble.place.size()) {
    trouble.place += step;
  }
  PlaceInside(const PlaceInside&) = delete;
  PlaceInside& operator=(const PlaceInside&) = delete;
  ~PlaceInside() { trouble_.place.resize(before_); }

 private:
  ReadTrouble& trouble_;
  std::size_t before_;
};

template <class T>
std::size_t most_of() {
  if (std::is_same_v<T, Blow>) return kMostBlows;
  return std::is_same_v<T, DrillMesh> ? kMostMeshes : kMostSamples;
}

void read_value(const Json& json, ReadTrouble& trouble, std::string& value);
void read_value(const Json& json, ReadTrouble& trouble, bool& value);
void read_value(const Json& json, ReadTrouble& trouble, double& value);
void read_value(const Json& json, ReadTrouble& trouble, Duration& value);
void read_value(const Json& json, ReadTrouble& trouble, WallTime& value);
template <class Number>
requires std::is_integral_v<Number>
void read_value(const Json& json, ReadTrouble& trouble, Number& value);
template <class Enum>
requires std::is_enum_v<Enum>
void read_value(const Json& json, ReadTrouble& trouble, Enum& value);
template <class Struct>
requires std::is_class_v<Struct>
void read_value(const Json& json, ReadTrouble& trouble, Struct& value);
template <class T>
void read_value(const Json& json, ReadTrouble& trouble, std::optional<T>& value);
template <class T>
void read_value(const Json& json, ReadTrouble& trouble, std::vector<T>& values);

template <class T>
constexpr bool kMayLack = false;
template <class T>
constexpr bool kMayLack<std::optional<T>> = true;

class FieldReader {
 public:
  FieldReader(const Json& json, ReadTrouble& trouble) : json_(json), trouble_(trouble) {}

  template <class T>
  void operator()(const char* key, T& value) {
    if (!trouble_.none()) return;
    const PlaceInside here(trouble_, text(".", key));
    const Json* const found = json_.find(key);
    // Keys are added: a report of an older monarch lacks them.
    if (found == nullptr) return kMayLack<T> ? void() : trouble_.say("is missing");
    read_value(*found, trouble_, value);
  }

 private:
  const Json& json_;
  ReadTrouble& trouble_;
};

void read_value(const Json& json, ReadTrouble& trouble, std::string& value) {
  auto read = json.as_string();
  if (!read) return trouble.say("is no text");
  value = std::move(*read);
}
void read_value(const Json& json, ReadTrouble& trouble, bool& value) {
  const auto read = json.as_bool();
  if (!read) return trouble.say("is neither true nor false");
  value = *read;
}
void read_value(const Json& json, ReadTrouble& trouble, double& value) {
  const auto read = json.as_double();
  if (!read || *read < -1e15 || *read > 1e15) return trouble.say("is no number from -1e15 to 1e15");
  value = *read;
}
void read_value(const Json& json, ReadTrouble& trouble, Duration& value) {
  const auto read = json.as_int64();
  if (!read || *read < -kMostDuration || *read > kMostDuration) {
    return trouble.say(text("is no number of nanoseconds up to ", kMostDuration));
  }
  value = Duration::nanoseconds(*read);
}
void read_value(const Json& json, ReadTrouble& trouble, WallTime& value) {
  const auto read = json.as_int64();
  if (!read || *read < 0 || *read > kMostTime) return trouble.say("is no time in nanoseconds since 1970");
  value = WallTime{*read};
}
template <class Number>
requires std::is_integral_v<Number>
void read_value(const Json& json, ReadTrouble& trouble, Number& value) {
  if constexpr (std::is_signed_v<Number>) {
    const auto read = json.as_int64();
    if (read && std::in_range<Number>(*read)) value = static_cast<Number>(*read);
    if (!read || !std::in_range<Number>(*read)) trouble.say("is no whole number, or too large");
  } else {
    const auto read = json.as_uint64();
    if (read && std::in_range<Number>(*read)) value = static_cast<Number>(*read);
    if (!read || !std::in_range<Number>(*read)) trouble.say("is no whole number from 0 on, or too large");
  }
}
template <class Enum>
requires std::is_enum_v<Enum>
void read_value(const Json& json, ReadTrouble& trouble, Enum& value) {
  const auto& names = NamesOf<Enum>::kNames;
  const auto word = json.as_string();
  if (!word) return trouble.say("is no text");
  const auto found = std::find(names.begin(), names.end(), *word);
  if (found == names.end()) return trouble.say(text("is ", printable(*word).substr(0, 80), ", which is not known"));
  value = static_cast<Enum>(found - names.begin());
}
template <class Struct>
requires std::is_class_v<Struct>
void read_value(const Json& json, ReadTrouble& trouble, Struct& value) {
  if (!json.is_object()) return trouble.say("is no object");
  FieldReader reader(json, trouble);
  each_field(reader, value);
}
template <class T>
void read_value(const Json& json, ReadTrouble& trouble, std::optional<T>& value) {
  value.reset();
  if (json.is_null()) return;
  read_value(json, trouble, value.emplace());
}
template <class T>
void read_value(const Json& json, ReadTrouble& trouble, std::vector<T>& values) {
  if (!json.is_array()) return trouble.say("is no array");
  const auto& items = json.items();
  if (items.size() > most_of<T>()) return trouble.say(text("has ", items.size(), " entries, more than ", most_of<T>()));
  values.resize(items.size());
  for (std::size_t i = 0; i < items.size() && trouble.none(); ++i) {
    const PlaceInside here(trouble, text("[", i, "]"));
    read_value(items[i], trouble, values[i]);
  }
}

void check_meshes(const DrillRecord& record, ReadTrouble& trouble) {
  const PlaceInside here(trouble, ".meshes");
  for (const DrillMesh& mesh : record.meshes) {
    const bool whole = mesh.ranks_per_gang > 0 && mesh.ranks % mesh.ranks_per_gang == 0 && mesh.ranks <= kMostRanks;
    if (!whole) trouble.say(text("has ", mesh.name, " without a whole number of gangs, or with too many ranks"));
  }
}

template <class T>
void read_if_there(const Json& json, ReadTrouble& trouble, const char* key, T& value) {
  if (!trouble.none() || json.find(key) == nullptr) return;
  FieldReader(json, trouble)(key, value);
}

void read_event(const Json& json, ReadTrouble& trouble, JobEvent& event) {
  if (!json.is_object()) return trouble.say("is no object");
  FieldReader reader(json, trouble);
  reader("ns", event.time);
  reader("event", event.kind);
  reader("message", event.message);
  if (!trouble.none()) return;
  event.severity = facts_of(event.kind).severity;
  read_if_there(json, trouble, "number", event.number);
  read_if_there(json, trouble, "severity", event.severity);
  read_if_there(json, trouble, "host", event.host);
  read_if_there(json, trouble, "mesh", event.mesh);
  read_if_there(json, trouble, "rank", event.rank);
  read_if_there(json, trouble, "generation", event.generation);
  read_if_there(json, trouble, "pid", event.pid);
  const Json* const details = json.find("details");
  if (details == nullptr) return;
  for (const auto& [key, value] : details->members()) {
    const PlaceInside here(trouble, text(".details.", key));
    read_value(value, trouble, event.details.emplace_back(key, "").second);
  }
}

Error broken(const ReadTrouble& trouble) { return {ErrorCode::kInvalid, trouble.what}; }

}  // namespace

Result<DrillRecord> read_record_fields(const Json& json) {
  ReadTrouble trouble;
  DrillRecord record;
  read_value(json, trouble, record);
  check_meshes(record, trouble);
  if (!trouble.none()) return broken(trouble);
  const Json* const verdict = json.find("verdict");
  if (verdict == nullptr || verdict->is_null()) return record;
  auto read = parse_verdict(to_json(*verdict));
  if (!read.ok()) return Error{ErrorCode::kInvalid, text("record.verdict: ", read.error().message)};
  record.verdict = std::move(*read);
  return record;
}

Result<std::vector<JobEvent>> read_events(const Json& json) {
  ReadTrouble trouble{.place = "events", .what = {}};
  std::vector<JobEvent> events;
  if (!json.is_array()) trouble.say("is no array");
  if (json.items().size() > kMostEvents) trouble.say(text("has more than ", kMostEvents, " entries"));
  for (std::size_t i = 0; i < json.items().size() && trouble.none(); ++i) {
    const PlaceInside here(trouble, text("[", i, "]"));
    read_event(json.items()[i], trouble, events.emplace_back());
  }
  if (!trouble.none()) return broken(trouble);
  return events;
}

Result<DrillRecord> read_record(std::string_view json) {
  const auto parsed = parse_json(json, {.bytes = kMostReportBytes, .depth = 16});
  if (!parsed.ok()) {
    return Error{ErrorCode::kInvalid, text("it is no report of a drill, or is cut short: ", parsed.error().message)};
  }
  const std::string type = parsed->get_string("type").value_or("");
  if (type != "drill") {
    const std::string is = type.empty() ? "it says no type" : text("it is of type ", printable(type).substr(0, 80));
    return Error{ErrorCode::kInvalid, text("it is no report of a drill: ", is)};
  }
  const auto version = parsed->get_uint64("v");
  if (version != std::optional<std::uint64_t>(1)) {
    const std::string which = version ? text("of version ", *version) : "of no version";
    return Error{ErrorCode::kInvalid, text("it is ", which, "; this monarch reads reports of version 1")};
  }
  for (const char* key : {"record", "events", "commits", "samples"}) {
    if (parsed->find(key) == nullptr) return Error{ErrorCode::kInvalid, text("it has no ", key)};
  }
  MONARCH_ASSIGN(DrillRecord record, read_record_fields(*parsed->find("record")));
  MONARCH_ASSIGN(record.events, read_events(*parsed->find("events")));
  MONARCH_TRY(read_commits(*parsed->find("commits"), record.events));
  std::size_t gangs = 0;
  for (const DrillMesh& mesh : record.meshes) gangs += gangs_of(mesh);
  MONARCH_ASSIGN(record.samples, read_samples(*parsed->find("samples"), std::min<std::size_t>(gangs, kMostGangs)));
  return record;
}

}  // namespace monarch::drill
