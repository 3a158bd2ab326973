// Writes the corpus of drill_fuzz into the folder given. Run it again when what a record holds is changed: drill-corpus
// tests/fuzz/corpus/drill
//
// Thread: main, alone.

#include <filesystem>
#include <fstream>
#include <string>

#include "supervisor/drill/core/measure.h"
#include "supervisor/drill/report/report_json.h"
#include "tests/supervisor/drill/core/drill_run.h"

namespace {

using namespace monarch;
using namespace monarch::drill;

// Times and numbers as far apart as a report may have them.
void stretch(DrillRecord& record) {
  record.started = WallTime{};
  record.ended = WallTime{4'000'000'000'000'000'000};
  record.faults_to = record.ended;
  record.times.lost_after = Duration::forever();
  record.blows[0].clock_error = Duration::forever();
  record.blows[0].lasts = Duration::forever();
  record.blows[0].struck_at = WallTime{};
  record.events.back().time = record.ended;
  record.events.back().details = {{"gang", "0"}, {"after_ms", "99999999999999"}, {"again", "18446744073709551615"}};
  record.samples.back().at = record.ended;
  record.samples.back().meshes[0].steps[0] = ~std::uint64_t{0};
  record.meshes.push_back({.name = "wide", .ranks = 1'000'000, .ranks_per_gang = 1'000, .sidecar = true});
}

void make_hostile(DrillRecord& record) {
  const std::string evil = "</script><img src=x onerror=alert(1)>\x1b[2J\xff\" ' & \n";
  record.scenario.name = evil;
  record.cut_short = evil;
  record.blows[0].fault = evil;
  record.blows[0].why = evil;
  record.blows[0].target.gangs = {{7, 9}, {0, ~std::uint32_t{0}}};
  record.events[3].message = evil;
  record.events[3].details = {{evil, evil}, {"gang", "-1"}};
  record.samples[3].hosts = {{evil, evil}};
  record.leftovers = {{.host = evil, .what = evil}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder(argv[1]);
  std::filesystem::create_directories(folder);
  const auto write = [&folder](const char* name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  DrillRun run(1, 34);
  add_kill(run, 25);
  for (std::uint32_t step = 20; step < 100; step += 20) {
    JobEvent& commit = run.gang_event(20 + step / 10.0, EventKind::kCheckpointCommitted, 0);
    commit.details.emplace_back("step", text(step));
    commit.message = text("trainer: gang 0 has committed step ", step, ", generation ", commit.generation);
  }
  const DrillRecord plain = run.done();
  const auto json = [](const DrillRecord& record) { return report_json(record, measure(record)); };
  const std::string good = json(plain);
  write("kill", good);
  write("cut", good.substr(0, good.size() / 2));
  DrillRecord changed = plain;
  stretch(changed);
  write("stretched", json(changed));
  changed = plain;
  make_hostile(changed);
  write("hostile", json(changed));
  write("empty", json(DrillRecord()));
  const auto replaced = [&](const char* name, const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    if (at != std::string::npos) text.replace(at, from.size(), to);
    write(name, text);
  };
  replaced("another_version", "\"v\":1", "\"v\":2");
  replaced("another_type", "\"type\":\"drill\"", "\"type\":\"result\"");
  replaced("too_many_samples", "\"n\":137", "\"n\":200000");
  replaced("no_gangs", "\"ranks_per_gang\":2", "\"ranks_per_gang\":0");
  replaced("negative", "\"number\":1", "\"number\":-1");
  replaced("few_commits", "\"gang\":0,\"n\":4", "\"gang\":0,\"n\":5");
  replaced("long_column", "\"steps\":[\"", "\"steps\":[\"1*99999999999 ");
  return 0;
}
