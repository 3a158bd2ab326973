#pragma once

// Drills that never were, for tests of what is shown of one: of any size, and with the names and messages of one who
// means harm.
//
// Thread: pure functions.

#include <array>
#include <string>
#include <string_view>

#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/report.h"

namespace monarch::drill {

struct SampleDrill {
  DrillRecord record;
  DrillReport report;
};

// Each as it can be: passed, five faults of five classes on six hosts, compared.
SampleDrill five_faults();
// So many faults, one after the other, on so many hosts, each of which has a gang of four ranks.
SampleDrill many_faults(std::uint32_t faults, std::uint32_t hosts);
// Every string of it is `bytes`.
SampleDrill hostile_drill(std::string_view bytes);

using namespace std::string_view_literals;
inline constexpr std::array kHostileBytes = {
    "</title><script>alert(1)</script>"sv,
    "\" onload=\"alert(1)\" x=\""sv,
    "' onmouseover='alert(1)"sv,
    "]]>"sv,
    "-->"sv,
    "</style></svg></pre></table><img src=x onerror=alert(1)>"sv,
    "&lt;&amp;&#10;&nosuch;&"sv,
    "https://example.org/a.js url(https://example.org/b)"sv,
    "\0\x01\x02\x1b[31m\r\n\t\x7f"sv,
    "\xff\xfe\x80\xc3\x28\xed\xa0\x80\xf5\x80\x80\x80"sv,
    "\xef\xbf\xbe\xef\xbf\xbf\xef\xb7\x90"sv,
    "\xe2\x80\xae\xe2\x80\x8f\xe2\x80\x8e\xd8\x9c\xe2\x81\xa6xyz"sv,
    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xf0\x9f\x94\xa5 \xe6\xbc\xa2\xe5\xad\x97"sv,
    "%s%n{}{{0}}$(reboot)`reboot`"sv,
    ""sv,
};

}  // namespace monarch::drill
