#pragma once

// The fields of a record, each with its key in report.json: one list for writing and for reading. An Io is called with
// the key and the field. Events and samples have forms of their own.
//
// Thread: templates over values.

#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "supervisor/drill/core/record.h"

namespace monarch::drill {

template <class T, class Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

// The names of an enum's values, in their order.
template <class Enum>
struct NamesOf;
template <>
struct NamesOf<TriggerKind> {
  static constexpr std::array<std::string_view, 4> kNames = {"at", "every", "on_step", "on_event"};
};
template <>
struct NamesOf<Budgets> {
  static constexpr std::array<std::string_view, 2> kNames = {"forgiven", "real"};
};
template <>
struct NamesOf<Compare> {
  static constexpr std::array<std::string_view, 2> kNames = {"none", "full-restart"};
};
template <>
struct NamesOf<BlowEnd> {
  static constexpr std::array<std::string_view, 3> kNames = {"effective", "inert", "skipped"};
};
template <>
struct NamesOf<FaultClass> {
  static constexpr auto kNames = kFaultClassNames;
};
template <>
struct NamesOf<Measure> {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kMeasures.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMeasures[i].name;
    return names;
  }();
};
template <>
struct NamesOf<EventKind> {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kEventKinds.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEventKinds[i].name;
    return names;
  }();
};
template <>
struct NamesOf<Severity> {
  static constexpr std::array<std::string_view, 3> kNames = {"info", "warning", "error"};
};

template <class Io, Is<FaultTarget> T>
void each_field(Io& io, T& target) {
  io("mesh", target.mesh);
  io("at", target.at);
  io("rank", target.rank);
  io("gang", target.gang);
  io("host", target.host);
}

template <class Io, Is<ScenarioPlace> T>
void each_field(Io& io, T& place) {
  io("line", place.line);
  io("column", place.column);
}

template <class Io, Is<FaultEntry> T>
void each_field(Io& io, T& entry) {
  io("fault", entry.fault);
  io("target", entry.target);
  io("trigger", entry.trigger);
  io("at", entry.at);
  io("every", entry.every);
  io("step", entry.step);
  io("event", entry.event);
  io("after", entry.after);
  io("times", entry.times);
  io("lasts", entry.lasts);
  io("processes", entry.processes);
  io("percent", entry.percent);
  io("size", entry.size);
  io("place", entry.place);
}

template <class Io, Is<DrillGuard> T>
void each_field(Io& io, T& guard) {
  io("max_gangs_down", guard.max_gangs_down);
  io("min_spares", guard.min_spares);
  io("wait", guard.wait);
  io("stop_below_goodput", guard.stop_below_goodput);
}

template <class Io, Is<Bound> T>
void each_field(Io& io, T& bound) {
  io("measure", bound.measure);
  io("of", bound.of);
  io("value", bound.value);
  io("place", bound.place);
}

template <class Io, Is<Scenario> T>
void each_field(Io& io, T& scenario) {
  io("name", scenario.name);
  io("job", scenario.job);
  io("seed", scenario.seed);
  io("settle", scenario.settle);
  io("control", scenario.control);
  io("duration", scenario.duration);
  io("overlap", scenario.overlap);
  io("faults", scenario.faults);
  io("guard", scenario.guard);
  io("budgets", scenario.budgets);
  io("expect", scenario.expect);
  io("same_output", scenario.same_output);
  io("compare", scenario.compare);
}

template <class Io, Is<BlowGang> T>
void each_field(Io& io, T& gang) {
  io("mesh", gang.mesh);
  io("gang", gang.gang);
}

template <class Io, Is<BlowTarget> T>
void each_field(Io& io, T& target) {
  io("host", target.host);
  io("mesh", target.mesh);
  io("rank", target.rank);
  io("gangs", target.gangs);
}

template <class Io, Is<Blow> T>
void each_field(Io& io, T& blow) {
  io("number", blow.number);
  io("entry", blow.entry);
  io("draw", blow.draw);
  io("fault", blow.fault);
  io("target", blow.target);
  io("due", blow.due);
  io("struck_at", blow.struck_at);
  io("seen_at", blow.seen_at);
  io("clock_error", blow.clock_error);
  io("lasts", blow.lasts);
  io("undone_at", blow.undone_at);
  io("end", blow.end);
  io("why", blow.why);
  io("taken_back", blow.taken_back);
  io("struck", blow.struck);
}

template <class Io, Is<DrillMesh> T>
void each_field(Io& io, T& mesh) {
  io("name", mesh.name);
  io("ranks", mesh.ranks);
  io("ranks_per_gang", mesh.ranks_per_gang);
  io("sidecar", mesh.sidecar);
  io("hang", mesh.hang);
}

template <class Io, Is<DrillTimes> T>
void each_field(Io& io, T& times) {
  io("heartbeat", times.heartbeat);
  io("suspect_after", times.suspect_after);
  io("lost_after", times.lost_after);
  io("lease", times.lease);
  io("hang", times.hang);
}

template <class Io, Is<IncarnationCheck> T>
void each_field(Io& io, T& check) {
  io("at", check.at);
  io("host", check.host);
  io("ranks", check.ranks);
  io("doubled", check.doubled);
}

template <class Io, Is<DrillLeftover> T>
void each_field(Io& io, T& left) {
  io("host", left.host);
  io("what", left.what);
}

template <class Io, Is<CompareRun> T>
void each_field(Io& io, T& run) {
  io("lost_rank_milliseconds", run.lost_rank_milliseconds);
  io("rank_milliseconds", run.rank_milliseconds);
}

template <class Io, Is<DrillRecord> T>
void each_field(Io& io, T& record) {
  io("scenario", record.scenario);
  io("seed", record.seed);
  io("job_id", record.job_id);
  io("launcher", record.launcher);
  io("monarch", record.monarch);
  io("command", record.command);
  io("times", record.times);
  io("meshes", record.meshes);
  io("started", record.started);
  io("control_from", record.control_from);
  io("control_to", record.control_to);
  io("faults_to", record.faults_to);
  io("ended", record.ended);
  io("blows", record.blows);
  io("incarnations", record.incarnations);
  io("leftovers", record.leftovers);
  io("hosts_searched", record.hosts_searched);
  io("here", record.here);
  io("peer", record.peer);
  io("same_output", record.same_output);
  io("same_output_seen", record.same_output_seen);
  io("cut_short", record.cut_short);
  io("interrupted", record.interrupted);
  io("left_out", record.left_out);
}

}  // namespace monarch::drill
