#pragma once

// Theme: what the run of a seed is about, beside the mix of everything: one chain of faults that the mix rarely brings
// together, often enough to matter. A theme is drawn from the seed alone, and changes a scenario that is drawn already.
//
// Thread: constants and values.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace monarch::sim {

struct Scenario;

enum class Theme : std::uint8_t {
  kMix,
  kThaws,        // hosts stand still for longer than a lease, and wake beside their successors
  kLateAnswers,  // ranks are started again and again, and words about the one before come late
  kShrink,       // gangs are parked, and return
  kSickHosts,    // ranks die of their host
  kOperator,     // somebody restarts, drains, undrains and retries while things fail
  kHostile,      // daemons lie about the ranks of others, and one of terms and generations
  kSwitches,     // many hosts fall silent together, again and again
  kStandby,      // gangs wait at their gates on spares that are warmed, and die, and take the place of others
  kHangs,        // ranks cease to get on, and operators and debuggers stop them on purpose
  kCommits,      // ranks commit checkpoints, also those whose generation is over, and supervisors die in between
  kPauses,       // everything stands still together, and goes on; nothing else happens
  kDrills,  // a drill kills ranks and hosts and says so, while others die of their host, and supervisors of nothing
  kClaims,  // processes claim idle slots and let them go, come and go, while posts, supervisors and hosts fail
};

struct ThemeName {
  Theme theme;
  const char* name;
};

inline constexpr std::array kThemes = {
    ThemeName{Theme::kMix, "mix"},
    ThemeName{Theme::kThaws, "thaws"},
    ThemeName{Theme::kLateAnswers, "late-answers"},
    ThemeName{Theme::kShrink, "shrink"},
    ThemeName{Theme::kSickHosts, "sick-hosts"},
    ThemeName{Theme::kOperator, "operator"},
    ThemeName{Theme::kHostile, "hostile"},
    ThemeName{Theme::kSwitches, "switches"},
    ThemeName{Theme::kStandby, "standby"},
    ThemeName{Theme::kHangs, "hangs"},
    ThemeName{Theme::kCommits, "commits"},
    ThemeName{Theme::kPauses, "pauses"},
    ThemeName{Theme::kDrills, "drills"},
    ThemeName{Theme::kClaims, "claims"},
};

std::optional<Theme> theme_named(std::string_view name);

// Every second run is of the mix.
Theme theme_of(std::uint64_t seed);

void apply_theme(Theme theme, Scenario& scenario);

}  // namespace monarch::sim
