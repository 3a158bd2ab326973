#include "tests/sim/replay/replayer.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include "supervisor/journal/core_records.h"
#include "tests/sim/replay/action_words.h"
#include "tests/sim/scenario.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr std::size_t kMostActions = 4;  // that are named, of either kind

class Replay {
 public:
  Replay(const Recording& recording, Mutant mutant) : recording_(recording), spec_(core_spec(recording.spec, mutant)) {}

  std::optional<std::string> run() {
    for (std::size_t i = 0; i < recording_.steps.size(); ++i) {
      const Step& step = recording_.steps[i];
      std::string what;
      std::string differs;
      try {
        std::vector<Action> actions;
        if (const auto* begun = std::get_if<Begun>(&step.what)) {
          what = text("a core of ", begun->events, " events");
          differs = begin(*begun);
        } else {
          differs = tell(std::get<Told>(step.what), step.now, what, actions);
        }
        if (differs.empty()) differs = held_against(step, actions);
      } catch (const Violation& violation) {
        differs = text("\n  ", violation.label, ": ", violation.message);
      }
      if (!differs.empty()) return text("step ", i, ", ", what, " at ", time_text(step.now), ":", differs);
    }
    return std::nullopt;
  }

 private:
  struct Heard {
    CoreEvent event;
    Instant now;
  };

  // Since the first step: what a clock showed then is a matter of dice.
  std::string time_text(Instant when) const {
    if (when == Instant::never()) return "never";
    char buffer[64];
    const double seconds = (when - recording_.steps.front().now).count_seconds();
    (void)std::snprintf(buffer, sizeof buffer, "%.6f s", seconds);
    return buffer;
  }

  JobCore make() const { return JobCore(spec_, pool_of(spec_), core_options()); }

  void feed(JobCore& core, std::size_t from, std::size_t to) const {
    for (std::size_t i = from; i < to; ++i) (void)core.step(heard_[i].event, heard_[i].now);
  }

  // As the supervisor does: a state that was written down, and what came after it.
  std::string begin(const Begun& begun) {
    if (begun.events > heard_.size() || begun.in_snapshot.value_or(0) > begun.events) {
      return "\n  the recording has no such events";
    }
    heard_.resize(begun.events);
    core_.emplace(spec_, pool_of(spec_), core_options());
    if (begun.in_snapshot) {
      JobCore before = make();
      feed(before, 0, *begun.in_snapshot);
      Result<JobState> state = decode_job_state(encode_job_state(before.state()));
      if (!state.ok()) return text("\n  its state cannot be read again: ", state.error().message);
      core_->restore(std::move(*state));
    }
    feed(*core_, begun.in_snapshot.value_or(0), begun.events);
    return {};
  }

  std::string tell(const Told& told, Instant now, std::string& what, std::vector<Action>& actions) {
    if (!core_) return "\n  the recording has no core before it";
    Result<CoreEvent> event = decode_core_event(told.event.data);
    if (!event.ok()) {
      what = "an event";
      return text("\n  this tree does not know it: ", event.error().message);
    }
    what = event_words(*event);
    actions = core_->step(*event, now);
    heard_.push_back({std::move(*event), now});
    return {};
  }

  std::string held_against(const Step& step, const std::vector<Action>& actions) const {
    std::string differs = held_against(step.actions, encodings_of(actions));
    const Shown shown = shown_by(*core_, step.now);
    if (shown.status != step.shown.status) differs += "\n  status_of differs";
    if (shown.roster != step.shown.roster) differs += "\n  the roster differs";
    if (shown.vaults != step.shown.vaults) differs += "\n  the table of the vaults differs";
    if (shown.outstanding != step.shown.outstanding)
      differs += "\n  what is outstanding for hosts that report nothing differs";
    if (shown.deadline != step.shown.deadline) {
      differs += "\n  next_deadline was " + time_text(step.shown.deadline) + ", is " + time_text(shown.deadline);
    }
    return differs;
  }

  std::string held_against(const std::vector<std::uint32_t>& places, const std::vector<std::string>& now) const {
    std::vector<std::string> before;
    for (const std::uint32_t place : places) {
      if (place >= recording_.actions.size()) return "\n  the recording has no such action";
      before.push_back(recording_.actions[place].data);
    }
    if (before == now) return {};
    std::vector<std::string> gone;
    std::vector<std::string> added;
    std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(gone));
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(added));
    const std::string others = differing_contents(gone, added);
    return others + named("\n  no more: ", gone) + named("\n  new: ", added);
  }

  // Those with the same words, which differ in what words leave out; they are taken from both.
  static std::string differing_contents(std::vector<std::string>& gone, std::vector<std::string>& added) {
    std::string lines;
    std::erase_if(gone, [&](const std::string& before) {
      const std::string words = action_words(before);
      const auto same = std::find_if(added.begin(), added.end(),
                                     [&](const std::string& each) { return action_words(each) == words; });
      if (same == added.end()) return false;
      lines += text("\n  another one: ", words, "\n    ", where_they_differ(before, *same));
      added.erase(same);
      return true;
    });
    return lines;
  }

  static std::string named(const char* how, const std::vector<std::string>& encodings) {
    std::string lines;
    for (std::size_t i = 0; i < std::min(encodings.size(), kMostActions); ++i) {
      lines += how + action_words(encodings[i]);
    }
    if (encodings.size() > kMostActions) lines += text(how, "and ", encodings.size() - kMostActions, " further ones");
    return lines;
  }

  const Recording& recording_;
  const JobSpec spec_;
  std::vector<Heard> heard_;  // what the present core was given
  std::optional<JobCore> core_;
};

}  // namespace

std::optional<std::string> first_difference(const Recording& recording, Mutant mutant) {
  return Replay(recording, mutant).run();
}

}  // namespace monarch::sim
