#pragma once

// What the table, the JUnit file and the page say of a drill in words: one way of saying each. Nothing is escaped here.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

// What became of one fault: of the job's answer, or of the fault itself.
enum class FaultState : std::uint8_t { kFine, kWrong, kInert, kSkipped };
FaultState state_of(const Blow& blow, const FaultFigures& figures);
std::string_view word_of(FaultState state);
// "as expected", "wrong: not seen", "inert: never felt"
std::string result_words(const Blow& blow, const FaultFigures& figures);
// The figures of the record's blow at that place; empty ones where the report has none.
const FaultFigures& figures_of(const DrillReport& report, std::size_t place);

// "trainer/3 on v2", "v2", "the supervisor"
std::string target_words(const BlowTarget& target);
// The same; of a fault that found nobody "nobody".
std::string target_words(const Blow& blow);
// "12ms"; of nothing: "–"
std::string words_of(const std::optional<Duration>& duration);
// "≤ 1s"
std::string bound_words(const BoundResult& bound);
// "90ms", "0.97", "no evidence"
std::string value_words(const BoundResult& bound);
// What the bound of that name is about: "time to detect, p95: process"; empty: it has no words of its own.
std::string meaning_words(std::string_view what);
// What was not as expected, each by its name: "ours_p95.host", "I4", "fault 3".
std::vector<std::string> names_of_what_failed(const DrillRecord& record, const DrillReport& report);

}  // namespace monarch::drill
