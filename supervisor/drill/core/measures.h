#pragma once

// What a drill measures and a scenario may bound, each by its name, unit and direction; and the classes of faults that
// figures are told apart by.
//
// Thread: constant data.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace monarch::drill {

#define MONARCH_FAULT_CLASSES(X) \
  X(kProcess, "process") X(kHang, "hang") X(kHost, "host") X(kNetwork, "network") X(kSupervisor, "supervisor")

enum class FaultClass : std::uint8_t {
#define MONARCH_FAULT_CLASS(value, name) value,
  MONARCH_FAULT_CLASSES(MONARCH_FAULT_CLASS)
#undef MONARCH_FAULT_CLASS
};
inline constexpr std::array<std::string_view, 5> kFaultClassNames = {
#define MONARCH_FAULT_CLASS(value, name) name,
    MONARCH_FAULT_CLASSES(MONARCH_FAULT_CLASS)
#undef MONARCH_FAULT_CLASS
};
constexpr std::string_view name_of(FaultClass of) { return kFaultClassNames[static_cast<std::size_t>(of)]; }

enum class MeasureUnit : std::uint8_t { kRatio, kCount, kSeconds };

// X(value, name, unit, at_least, by_class): a value meets its bound by being at least that, or at most.
#define MONARCH_MEASURES(X)                                   \
  X(kSeen, "seen", kRatio, true, false)                       \
  X(kOursP95, "ours_p95", kSeconds, false, true)              \
  X(kTtrP95, "ttr_p95", kSeconds, false, true)                \
  X(kTtdP95, "ttd_p95", kSeconds, false, true)                \
  X(kEttr, "ettr", kRatio, true, false)                       \
  X(kGoodput, "goodput", kRatio, true, false)                 \
  X(kBlast, "blast", kRatio, false, false)                    \
  X(kFalsePositives, "false_positives", kCount, false, false) \
  X(kLeftovers, "leftovers", kCount, false, false)            \
  X(kInert, "inert", kRatio, false, false)                    \
  X(kRatio, "ratio", kRatio, false, false)

enum class Measure : std::uint8_t {
#define MONARCH_MEASURE(value, name, unit, at_least, by_class) value,
  MONARCH_MEASURES(MONARCH_MEASURE)
#undef MONARCH_MEASURE
};

struct MeasureFacts {
  Measure measure;
  std::string_view name;
  MeasureUnit unit;
  bool at_least;
  bool by_class;
};
inline constexpr std::array kMeasures = {
#define MONARCH_MEASURE(value, name, unit, at_least, by_class) \
  MeasureFacts{Measure::value, name, MeasureUnit::unit, at_least, by_class},
    MONARCH_MEASURES(MONARCH_MEASURE)
#undef MONARCH_MEASURE
};
constexpr const MeasureFacts& facts_of(Measure measure) { return kMeasures[static_cast<std::size_t>(measure)]; }

}  // namespace monarch::drill
