#include "supervisor/drill/report/record_json.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "supervisor/client/link/viewer_json.h"
#include "supervisor/drill/report/record_fields.h"

namespace monarch::drill {

namespace {

Json value_json(const std::string& value) { return Json(value); }
Json value_json(const Duration& value) {
  return Json(std::clamp(value.count_nanoseconds(), -kMostDuration, kMostDuration));
}
Json value_json(const WallTime& value) {
  return Json(std::clamp<std::int64_t>(value.nanoseconds_since_epoch, 0, kMostTime));
}
template <class Number>
requires std::is_arithmetic_v<Number> Json value_json(const Number& value) { return Json(value); }
template <class Enum>
requires std::is_enum_v<Enum> Json value_json(const Enum& value) {
  return Json(NamesOf<Enum>::kNames[static_cast<std::size_t>(value)]);
}
template <class Struct>
requires std::is_class_v<Struct> Json value_json(const Struct& value);
template <class T>
Json value_json(const std::optional<T>& value);
template <class T>
Json value_json(const std::vector<T>& values);

class FieldWriter {
 public:
  template <class T>
  void operator()(const char* key, const T& value) {
    members_.emplace_back(key, value_json(value));
  }
  Json done() { return Json::from_members(std::move(members_)); }

 private:
  Json::Object members_;
};

template <class Struct>
requires std::is_class_v<Struct> Json value_json(const Struct& value) {
  FieldWriter writer;
  each_field(writer, value);
  return writer.done();
}
template <class T>
Json value_json(const std::optional<T>& value) {
  return value ? value_json(*value) : Json();
}
template <class T>
Json value_json(const std::vector<T>& values) {
  std::vector<Json> items;
  items.reserve(values.size());
  for (const T& value : values) items.push_back(value_json(value));
  return Json::array(std::move(items));
}

// Fields that an event has not are left out.
Json one_event_json(const JobEvent& event) {
  Json::Object members;
  if (event.number > 0) members.emplace_back("number", event.number);
  members.emplace_back("ns", value_json(event.time));
  members.emplace_back("event", name_of(event.kind));
  if (event.severity != facts_of(event.kind).severity) members.emplace_back("severity", value_json(event.severity));
  if (!event.host.empty()) members.emplace_back("host", event.host);
  if (!event.mesh.empty()) members.emplace_back("mesh", event.mesh);
  if (event.rank) members.emplace_back("rank", *event.rank);
  if (event.generation > 0) members.emplace_back("generation", event.generation);
  if (event.pid != 0) members.emplace_back("pid", event.pid);
  members.emplace_back("message", event.message);
  Json details = Json::object();
  for (const auto& [key, value] : event.details) details.set(key, value);
  if (!event.details.empty()) members.emplace_back("details", std::move(details));
  return Json::from_members(std::move(members));
}

}  // namespace

Json record_fields_json(const DrillRecord& record) {
  FieldWriter writer;
  each_field(writer, record);
  Json fields = writer.done();
  fields.set("verdict", record.verdict ? verdict_json(*record.verdict) : Json());
  return fields;
}

Json events_json(const std::vector<JobEvent>& events) {
  std::vector<Json> items;
  items.reserve(events.size());
  for (const JobEvent& event : events) {
    if (!is_in_columns(event)) items.push_back(one_event_json(event));
  }
  return Json::array(std::move(items));
}

}  // namespace monarch::drill
