#pragma once

// What the processes of a host wait for, as its kernel counts it (PSI, Documentation/accounting/psi.rst): the share of
// the last ten seconds in which one of them at least stood still for want of it.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string_view>

#include <monarch/fields.hpp>

namespace monarch {

// Percent each.
struct HostPressure {
  std::uint8_t cpu = 0;
  std::uint8_t memory = 0;
  std::uint8_t io = 0;
  friend bool operator==(const HostPressure&, const HostPressure&) = default;
};
MONARCH_FIELDS(HostPressure, cpu, memory, io)

// Of what /proc/pressure/cpu, memory or io reads as: "some avg10=12.34 avg60=… total=…" is 12. Nothing: it is none of
// them.
std::optional<std::uint8_t> some_pressure(std::string_view file);

}  // namespace monarch
