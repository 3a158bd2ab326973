#include "supervisor/client/link/viewer_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::array kOutcomes = {std::string_view("succeeded"), std::string_view("failed"),
                                  std::string_view("stopped"), std::string_view("interrupted")};
constexpr std::array kCauses = {
    std::string_view("none"),       std::string_view("rank"),    std::string_view("host"),    std::string_view("start"),
    std::string_view("time_limit"), std::string_view("request"), std::string_view("internal")};
constexpr std::array kEnds = {std::string_view("none"), std::string_view("exited"), std::string_view("signaled"),
                              std::string_view("not_executed")};
constexpr std::array kSeverities = {std::string_view("info"), std::string_view("warning"), std::string_view("error")};

template <class Enum, std::size_t Count>
std::string_view name_in(const std::array<std::string_view, Count>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < Count ? names[index] : std::string_view("unknown");
}

template <class Enum, std::size_t Count>
bool value_in(const std::array<std::string_view, Count>& names, const std::optional<std::string>& name, Enum& value) {
  for (std::size_t i = 0; name && i < Count; ++i) {
    if (names[i] != *name) continue;
    value = static_cast<Enum>(i);
    return true;
  }
  return false;
}

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& value) { return value.empty() ? Json() : Json(value); }

Json end_json(const RankEnd& end) {
  if (end.kind == EndKind::kNone) return {};
  return Json::object({{"kind", name_in(kEnds, end.kind)},
                       {"value", end.value},
                       {"detail", text_or_null(end.detail)},
                       {"after_our_signal", end.after_our_signal},
                       {"out_of_memory", end.out_of_memory},
                       {"core_dumped", end.core_dumped}});
}

Json cause_json(const FirstCause& cause) {
  if (cause.kind == CauseKind::kNone) return {};
  return Json::object({{"kind", name_in(kCauses, cause.kind)},
                       {"host", text_or_null(cause.host)},
                       {"mesh", text_or_null(cause.mesh)},
                       {"rank", optional_json(cause.rank)},
                       {"gang", optional_json(cause.gang)},
                       {"gang_rank", optional_json(cause.gang_rank)},
                       {"generation", cause.generation},
                       {"pid", cause.pid},
                       {"end", end_json(cause.end)},
                       {"summary", cause.summary},
                       {"rule", text_or_null(cause.rule)},
                       {"stderr_tail", cause.stderr_tail},
                       {"secondary", cause.secondary}});
}

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.append(name);
  return list;
}

Json failed_hosts_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const HostFailure& failed : verdict.failed_hosts) list.append(host_failure_json(failed));
  return list;
}

// A number where JSON has it; `nan` and `inf` stay words.
Json metric_json(const std::string& value) {
  double number = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == value.data() + value.size();
  return whole && std::isfinite(number) ? Json(number) : Json(value);
}

Json progress_json(const RankStatus& rank) {
  if (rank.progress_age_milliseconds < 0) return {};
  const RankProgress& progress = rank.progress;
  Json metrics = Json::object();
  for (const auto& [name, value] : progress.metrics) metrics.set(name, metric_json(value));
  return Json::object({{"step", optional_json(progress.step)},
                       {"phase", text_or_null(progress.phase)},
                       {"status", text_or_null(progress.status)},
                       {"metrics", std::move(metrics)},
                       {"age_milliseconds", rank.progress_age_milliseconds}});
}

Json mesh_json(const MeshStatus& mesh) {
  Json dims = Json::object();
  for (const auto& [name, size] : mesh.dims) dims.set(name, size);
  Json ranks = Json::array();
  for (const RankStatus& rank : mesh.ranks) {
    ranks.append(Json::object({{"rank", rank.rank},
                               {"phase", rank.phase},
                               {"host", text_or_null(rank.host)},
                               {"generation", rank.generation},
                               {"pid", rank.pid},
                               {"end", text_or_null(rank.end)},
                               {"ready", rank.ready},
                               {"progress", progress_json(rank)},
                               {"standstill", text_or_null(rank.standstill)},
                               {"watched", rank.watched}}));
  }
  Json committed = Json::array();
  for (const CommittedStatus& one : mesh.committed) {
    committed.append(Json::object({{"gang", one.gang}, {"step", one.step}, {"generation", one.generation}}));
  }
  Json standby = Json::array();
  for (const StandbyStatus& one : mesh.standby) {
    Json hosts = Json::array();
    for (const std::string& host : one.hosts) hosts.append(host);
    standby.append(Json::object({{"phase", one.phase}, {"hosts", std::move(hosts)}}));
  }
  Json claims = Json::array();
  for (const ClaimStatus& one : mesh.claims) {
    Json its = Json::array();
    for (const std::uint32_t rank : one.ranks) its.append(rank);
    claims.append(
        Json::object({{"claim", one.claim}, {"name", one.name}, {"host", one.host}, {"ranks", std::move(its)}}));
  }
  Json gangs = Json::array();
  for (const GangStatus& gang : mesh.gangs) {
    gangs.append(Json::object({{"phase", gang.phase},
                               {"generation", gang.generation},
                               {"restarts", gang.restarts},
                               {"failures", gang.failures}}));
  }
  Json time = Json::object();
  for (const auto& [bin, milliseconds] : mesh.rank_milliseconds) time.set(bin, milliseconds);
  const RestartBudget& budget = mesh.restart;
  return Json::object({{"name", mesh.name},
                       {"dims", std::move(dims)},
                       {"phase", mesh.phase},
                       {"restart", Json::object({{"max", budget.max ? Json(*budget.max) : Json()},
                                                 {"window_milliseconds", budget.window_milliseconds}})},
                       {"gangs", std::move(gangs)},
                       {"ranks", std::move(ranks)},
                       {"committed", std::move(committed)},
                       {"standby", std::move(standby)},
                       {"claims", std::move(claims)},
                       {"trust", mesh.trusts_job ? "job" : "host"},
                       {"rank_milliseconds", std::move(time)}});
}

Json drops_json(const TalkDrops& drops) {
  return Json::object({{"bad_values", drops.bad_values},
                       {"too_long", drops.too_long},
                       {"foreign", drops.foreign},
                       {"connections", drops.connections},
                       {"slow_readers", drops.slow_readers}});
}

Json time_or_null(std::int64_t milliseconds) { return milliseconds < 0 ? Json() : Json(milliseconds); }

// Percent of the last ten seconds in which somebody waited for it.
Json pressure_json(const std::optional<HostPressure>& pressure) {
  if (!pressure) return {};
  return Json::object({{"cpu", pressure->cpu}, {"memory", pressure->memory}, {"io", pressure->io}});
}

Json host_json(const HostStatus& host) {
  return Json::object({{"name", host.name},
                       {"phase", host.phase},
                       {"role", host.role},
                       {"keeper_pid", host.keeper_pid},
                       {"daemon_starts", host.daemon_starts},
                       {"silent_milliseconds", host.silent_milliseconds},
                       {"round_trip_microseconds", host.round_trip_microseconds},
                       {"talk_drops", drops_json(host.talk_drops)},
                       {"standing", host.standing.empty() ? "good" : host.standing},
                       {"standing_because", text_or_null(host.standing_because)},
                       {"returns_milliseconds", time_or_null(host.returns_milliseconds)},
                       {"held_milliseconds", time_or_null(host.held_milliseconds)},
                       {"preparation", text_or_null(host.preparation)},
                       {"pressure", pressure_json(host.pressure)},
                       {"shortage", text_or_null(host.shortage)},
                       {"door", text_or_null(host.door)}});
}

// What to_text(WallTime) writes: "2026-11-20T12:04:41.120Z".
std::optional<WallTime> parse_wall_time(const std::optional<std::string>& written) {
  if (!written) return std::nullopt;
  std::tm parts{};
  const char* rest = ::strptime(written->c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  std::int64_t milliseconds = 0;
  if (*rest == '.') {
    std::int64_t scale = 100;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, scale /= 10) milliseconds += (*rest - '0') * scale;
  }
  if (std::string_view(rest) != "Z") return std::nullopt;
  return WallTime{(static_cast<std::int64_t>(::timegm(&parts)) * 1000 + milliseconds) * 1'000'000};
}

std::optional<std::uint32_t> small(const Json& object, std::string_view key) {
  const std::optional<std::uint64_t> value = object.get_uint64(key);
  if (!value || *value > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::int32_t signed_or(const Json& object, std::string_view key, std::int32_t otherwise) {
  const std::optional<std::int64_t> value = object.get_int64(key);
  return value && *value >= INT32_MIN && *value <= INT32_MAX ? static_cast<std::int32_t>(*value) : otherwise;
}

RankEnd parse_end(const Json& json) {
  RankEnd end;
  if (!value_in(kEnds, json.get_string("kind"), end.kind)) return {};
  end.value = signed_or(json, "value", 0);
  end.detail = json.get_string("detail").value_or("");
  end.after_our_signal = json.get_bool("after_our_signal").value_or(false);
  end.out_of_memory = json.get_bool("out_of_memory").value_or(false);
  end.core_dumped = json.get_bool("core_dumped").value_or(false);
  return end;
}

FirstCause parse_cause(const Json& json) {
  FirstCause cause;
  if (!value_in(kCauses, json.get_string("kind"), cause.kind)) return {};
  cause.host = json.get_string("host").value_or("");
  cause.mesh = json.get_string("mesh").value_or("");
  cause.rank = small(json, "rank");
  cause.gang = small(json, "gang");
  cause.gang_rank = small(json, "gang_rank");
  cause.generation = json.get_uint64("generation").value_or(0);
  cause.pid = signed_or(json, "pid", 0);
  if (const Json* end = json.find("end")) cause.end = parse_end(*end);
  cause.summary = json.get_string("summary").value_or("");
  cause.rule = json.get_string("rule").value_or("");
  cause.stderr_tail = json.get_string("stderr_tail").value_or("");
  cause.secondary = small(json, "secondary").value_or(0);
  return cause;
}

Json drill_json(const DrillStatus& drill) {
  Json open = Json::array();
  for (const std::uint32_t number : drill.open) open.append(number);
  return Json::object({{"name", drill.name},
                       {"drill", drill.drill},
                       {"who", drill.who},
                       {"since_milliseconds", drill.since_milliseconds},
                       {"open", std::move(open)},
                       {"stopped", drill.stopped}});
}

}  // namespace

std::string_view outcome_name(Outcome outcome) { return name_in(kOutcomes, outcome); }

Json event_json(const JobEvent& event) {
  Json details = Json::object();
  for (const auto& [key, value] : event.details) details.set(key, value);
  return Json::object({{"v", 1},
                       {"type", "event"},
                       {"number", event.number},
                       {"time", to_text(event.time)},
                       {"severity", name_in(kSeverities, event.severity)},
                       {"event", std::string(name_of(event.kind))},
                       {"host", text_or_null(event.host)},
                       {"mesh", text_or_null(event.mesh)},
                       {"rank", optional_json(event.rank)},
                       {"generation", event.generation},
                       {"pid", event.pid},
                       {"message", event.message},
                       {"details", std::move(details)}});
}

Json verdict_json(const Verdict& verdict) {
  return Json::object({{"v", 1},
                       {"type", "result"},
                       {"outcome", outcome_name(verdict.outcome)},
                       {"exit_code", verdict.exit_code},
                       {"reason", verdict.reason},
                       {"cause", cause_json(verdict.cause)},
                       {"started", to_text(verdict.started)},
                       {"ended", to_text(verdict.ended)},
                       {"left_behind", names_json(verdict.left_behind)},
                       {"failed_hosts", failed_hosts_json(verdict)},
                       {"failed_hosts_untold", verdict.failed_hosts_untold},
                       {"lost_output", names_json(verdict.lost_output)}});
}

Json status_json(const JobStatus& status) {
  Json meshes = Json::array();
  for (const MeshStatus& mesh : status.meshes) meshes.append(mesh_json(mesh));
  Json hosts = Json::array();
  for (const HostStatus& host : status.hosts) {
    if (host.phase != "on request") hosts.append(host_json(host));  // nobody has asked for it, and it is no machine
  }
  Json counters = Json::object();
  for (const auto& [name, count] : status.counters) counters.set(name, count);
  return Json::object({{"v", 1},
                       {"type", "status"},
                       {"job", status.job_id},
                       {"phase", status.phase},
                       {"term", status.term.value()},
                       {"supervisor_pid", status.supervisor_pid},
                       {"started", to_text(status.started)},
                       {"meshes", std::move(meshes)},
                       {"hosts", std::move(hosts)},
                       {"counters", std::move(counters)},
                       {"drill", status.drill ? drill_json(*status.drill) : Json()},
                       {"verdict", status.verdict ? verdict_json(*status.verdict) : Json()}});
}

Json host_failure_json(const HostFailure& failed) {
  return Json::object({{"host", failed.host},
                       {"kind", failed.kind},
                       {"phase", failed.phase},
                       {"elapsed_milliseconds", failed.elapsed_milliseconds},
                       {"message", failed.message},
                       {"again", text_or_null(failed.again)}});
}

HostFailure parse_host_failure(const Json& json) {
  return {.host = json.get_string("host").value_or(""),
          .kind = json.get_string("kind").value_or(""),
          .phase = json.get_string("phase").value_or(""),
          .elapsed_milliseconds = json.get_int64("elapsed_milliseconds").value_or(0),
          .message = json.get_string("message").value_or(""),
          .again = json.get_string("again").value_or("")};
}

Result<Verdict> parse_verdict(const std::string& json) {
  auto parsed = parse_json(json);
  if (!parsed.ok()) return Error{ErrorCode::kInvalid, text("reading a verdict: ", parsed.error().message)};
  Verdict verdict;
  const std::optional<std::int64_t> exit_code = parsed->get_int64("exit_code");
  const bool known = value_in(kOutcomes, parsed->get_string("outcome"), verdict.outcome);
  if (!known || !exit_code || *exit_code < 0 || *exit_code > 255) {
    return Error{ErrorCode::kInvalid, "reading a verdict: it lacks an outcome or an exit code"};
  }
  verdict.exit_code = static_cast<std::int32_t>(*exit_code);
  verdict.reason = parsed->get_string("reason").value_or("");
  if (const Json* cause = parsed->find("cause")) verdict.cause = parse_cause(*cause);
  verdict.started = parse_wall_time(parsed->get_string("started")).value_or(WallTime{});
  verdict.ended = parse_wall_time(parsed->get_string("ended")).value_or(WallTime{});
  if (const Json* hosts = parsed->find("left_behind")) {
    for (const Json& host : hosts->items()) verdict.left_behind.push_back(host.as_string().value_or(""));
  }
  if (const Json* hosts = parsed->find("failed_hosts")) {
    for (const Json& host : hosts->items()) verdict.failed_hosts.push_back(parse_host_failure(host));
  }
  verdict.failed_hosts_untold = small(*parsed, "failed_hosts_untold").value_or(0);
  if (const Json* lines = parsed->find("lost_output")) {
    for (const Json& line : lines->items()) verdict.lost_output.push_back(line.as_string().value_or(""));
  }
  return verdict;
}

}  // namespace monarch
