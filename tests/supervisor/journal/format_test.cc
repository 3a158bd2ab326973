// What a journal holds, byte by byte, as format.txt next to this file has it: a journal that was written before a
// change is read wrongly, or replayed into another history, unless the change raises the version.
// MONARCH_TEST_REGENERATE=1 writes the file anew, once that is done; then read the difference.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/journal/core_fields.h"
#include "supervisor/journal/core_records.h"
#include "supervisor/journal/journal_layout.h"
#include "supervisor/journal/record.h"
#include "tests/transport/wire/populated.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

// In the order of CoreEvent.
constexpr auto kInputs = std::to_array<const char*>(
    {"JobBegun",       "SupervisorReturned", "WorkerLaunched",      "WorkerLaunchFailed", "WorkerJoined",
     "WorkerEnded",    "HostSilent",         "PortsReserved",       "RankChanged",        "StopOrdered",
     "DeadlinePassed", "HostDoubted",        "IdleNoted",           "GangProgressed",     "RankHung",
     "HostsHeld",      "OperatorAsked",      "CheckpointCommitted", "PeopleTold",         "HoldAsked",
     "WorkerFailing",  "HostNamed",          "EndForeseen",         "GangsInherited",     "StoodStill",
     "HostDistrusted", "DrillNoted",         "GangPaused",          "StepsHeard",         "DaemonStarted",
     "SlotsClaimed",   "SlotsLetGo"});
static_assert(kInputs.size() == std::variant_size_v<CoreEvent>, "name the new input here, and see format.txt");

using Samples = std::vector<std::pair<std::string, std::string>>;  // what it is, and its bytes

template <class T>
T populated() {
  T value{};
  Populated().fill(value);
  return value;
}

template <std::size_t... I>
void add_inputs(Samples& samples, std::index_sequence<I...> /*of CoreEvent*/) {
  (samples.emplace_back(
       text("input ", kInputs[I]),
       encode_core_event(CoreEvent(std::in_place_index<I>, populated<std::variant_alternative_t<I, CoreEvent>>()))),
   ...);
}

Samples samples() {
  Record record;
  record.type = RecordType::kVerdict;
  record.term = Term(3);
  record.lsn = 7;
  record.synced_lsn = 5;
  record.wall = {1'790'000'000'000'000'001};
  record.now = Instant::since_boot(Duration::nanoseconds(12'345));
  record.payload = "payload";
  Samples all = {
      {"record", encode_record(record, 42).bytes},
      {"segment header", encode_segment_header({.number = 2, .first_lsn = 7, .seed = 42})},
      {"snapshot", encode_snapshot({.lsn = 6, .chain = 42, .term = Term(3), .bytes = "state"})},
      {"state", encode_job_state(populated<JobState>())},
      {"event", encode_job_event(populated<JobEvent>())},
      {"verdict", encode_payload(populated<Verdict>())},
  };
  add_inputs(all, std::make_index_sequence<std::variant_size_v<CoreEvent>>());
  return all;
}

std::string hexadecimal(const std::string& bytes) {
  constexpr std::size_t kPerLine = 64;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += kPerLine)
    out += text("  ", to_hex(bytes.substr(at, kPerLine)), "\n");
  return out;
}

struct Format {
  std::string version;                                     // the first line
  std::vector<std::pair<std::string, std::string>> parts;  // a name, and the lines that follow it
};

Format format_now() {
  Format format{.version = text("version ", kRecordVersion), .parts = {}};
  for (const auto& [name, bytes] : samples()) format.parts.emplace_back(name, hexadecimal(bytes));
  return format;
}

Format format_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Format format;
  std::getline(file, format.version);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("  ")) {
      format.parts.emplace_back(line, "");
    } else if (!format.parts.empty()) {
      format.parts.back().second += line + "\n";
    }
  }
  return format;
}

// Names of what is not the same.
std::string differences(const Format& before, const Format& now) {
  std::string names;
  for (const auto& part : now.parts) {
    if (std::find(before.parts.begin(), before.parts.end(), part) == before.parts.end())
      names += text("\n  ", part.first);
  }
  if (names.empty() && before.parts != now.parts) names = "\n  what is gone, or the order";
  return names;
}

TEST(JournalFormat, HasTheVersionThatItsBytesWereWrittenWith) {
  const std::string path = FORMAT_FILE;
  const Format before = format_of(path);
  const Format now = format_now();
  const std::string changed = differences(before, now);
  ASSERT_TRUE(changed.empty() || before.version != now.version)
      << "the bytes of these have changed, and kRecordVersion has not:" << changed
      << "\nRaise kRecordVersion (record.h) and kLayoutVersion (journal_layout.h), then write " << path
      << " anew:\n  MONARCH_TEST_REGENERATE=1 build/tests/supervisor/journal/supervisor-journal-format-test";
  if (std::getenv("MONARCH_TEST_REGENERATE") != nullptr) {
    std::ofstream file(path, std::ios::binary);
    file << now.version << "\n";
    for (const auto& [name, lines] : now.parts) file << name << "\n" << lines;
    ASSERT_TRUE(file.flush().good()) << path;
    return;
  }
  EXPECT_EQ(before.version, now.version) << path << " is of another version: MONARCH_TEST_REGENERATE=1 writes it anew";
}

TEST(JournalFormat, IsOneForRecordsAndFiles) { EXPECT_EQ(kLayoutVersion, kRecordVersion); }

TEST(JournalFormat, OfFieldsInAnotherOrderHasOtherBytes) {
  const HostSilent value = populated<HostSilent>();
  EXPECT_NE(encode_payload(std::make_pair(value.host, value.silence)),
            encode_payload(std::make_pair(value.silence, value.host)));
  const auto times = populated<LaunchTimes>();
  EXPECT_LT(times.waited, times.log_in);
  EXPECT_LT(times.log_in, times.copy);
  EXPECT_LT(times.copy, times.start);
}

}  // namespace
}  // namespace monarch
