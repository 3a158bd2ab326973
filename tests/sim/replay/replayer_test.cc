#include "tests/sim/replay/replayer.h"

#include <gtest/gtest.h>

#include <utility>

#include "supervisor/core/spec/placement.h"
#include "supervisor/journal/core_records.h"
#include "tests/sim/replay/action_words.h"
#include "tests/sim/replay/recorder.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch::sim {
namespace {

using fixtures::Driver;
using Story = std::vector<std::pair<CoreEvent, Instant>>;

JobSpec spec_of_story() {
  JobSpec spec = fixtures::job_that_recovers(2, 2, 4);
  spec.meshes[0].ready.kind = ReadyKind::kNotify;
  return spec;
}

// Two gangs run, and one of them is started again.
Story story() {
  Driver driver(spec_of_story());
  driver.run_all();
  driver.fail_gang({MeshId(0), Rank(2)}, fixtures::exited(7));
  driver.start_again(1);
  return driver.history;
}

// Supervisors that are told a story, one after the other.
class Job {
 public:
  Job() : recorder_(7, spec_of_story()) { begin(0, std::nullopt); }

  // A core has the first `events`, `in_snapshot` of them as a state.
  void begin(std::size_t events, std::optional<std::size_t> in_snapshot) {
    core_.emplace(spec_of_story(), pool_of(spec_of_story()), core_options());
    JournalContents journal;
    journal.last_lsn = lsn_of(events);
    if (in_snapshot) journal.snapshot = Snapshot{.lsn = lsn_of(*in_snapshot)};
    for (std::size_t i = in_snapshot.value_or(0); i < events; ++i) {
      journal.records.push_back({.type = RecordType::kInput, .lsn = lsn_of(i + 1)});
    }
    for (std::size_t i = 0; i < events; ++i) (void)core_->step(story_[i].first, story_[i].second);
    told_ = events;
    recorder_.begun(journal, *core_, story_[told_].second);
  }

  // Events up to this one; what is in the journal of it is so as well.
  void tell(std::size_t up_to, std::size_t written) {
    for (; told_ < up_to; ++told_) {
      const auto& [event, now] = story_[told_];
      const std::vector<Action> actions = core_->step(event, now);
      recorder_.decided(encode_core_event(event), actions, *core_, now);
      if (told_ < written) recorder_.appended(lsn_of(told_ + 1));
    }
  }
  void tell_all() { tell(story_.size(), story_.size()); }

  Recording recording() const { return recorder_.recording(); }

 private:
  // Each is followed by the records of what people were told.
  static std::uint64_t lsn_of(std::size_t events) { return 3 * events; }

  const Story story_ = story();
  Recorder recorder_;
  std::optional<JobCore> core_;
  std::size_t told_ = 0;
};

Recording recorded() {
  Job job;
  job.tell_all();
  return job.recording();
}

// The first step with an action of this kind.
std::size_t step_with(const Recording& recording, const std::string& words) {
  for (std::size_t i = 0; i < recording.steps.size(); ++i) {
    for (const std::uint32_t place : recording.steps[i].actions) {
      if (action_words(recording.actions[place].data).find(words) != std::string::npos) return i;
    }
  }
  std::string all;
  for (const codec::Bytes& action : recording.actions) all += action_words(action.data) + "\n";
  ADD_FAILURE() << "nobody does: " << words << "; but:\n" << all;
  return 0;
}

bool has(const std::optional<std::string>& told, const std::string& part) {
  return told && told->find(part) != std::string::npos;
}

TEST(Replayer, FindsNoDifferenceInWhatThisTreeRecorded) {
  const Recording recording = recorded();
  EXPECT_GT(recording.steps.size(), 15U);
  EXPECT_EQ(first_difference(recording), std::nullopt);
  const Result<Recording> read = decode_recording(encode_recording(recording));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->seed, 7U);
  EXPECT_EQ(first_difference(*read), std::nullopt);
}

TEST(Replayer, NamesTheActionThatWasNotThereBefore) {
  Recording recording = recorded();
  const std::size_t step = step_with(recording, "START of 0/2 0/3 generation 1.2");
  recording.steps[step].actions.clear();
  const auto told = first_difference(recording);
  EXPECT_TRUE(has(told, "step " + std::to_string(step) + ", PortsReserved at ")) << told.value_or("none");
  EXPECT_TRUE(has(told, "\n  new: to host 1: START of 0/2 0/3 generation 1.2")) << told.value_or("none");
  EXPECT_FALSE(has(told, "status_of")) << told.value_or("none");
}

TEST(Replayer, NamesTheActionThatIsGone) {
  Recording recording = recorded();
  const std::size_t step = step_with(recording, "RESERVE");
  const auto place = static_cast<std::uint32_t>(recording.actions.size());
  recording.actions.push_back({encode_action(DestroyWorker{HostId(1)})});
  recording.steps[step].actions.push_back(place);
  const auto told = first_difference(recording);
  EXPECT_TRUE(has(told, "\n  no more: destroy the worker of host 1")) << told.value_or("none");
  EXPECT_FALSE(has(told, "new:")) << told.value_or("none");
}

TEST(Replayer, SaysWhereTwoActionsDifferThatWordsTellAlike) {
  const auto told = first_difference(recorded(), Mutant::kReadyAtOnce);
  EXPECT_TRUE(has(told, "\n  another one: to host 0: START of 0/0 0/1 generation 1.1\n    at byte "))
      << told.value_or("none");
  EXPECT_FALSE(has(told, "new:")) << told.value_or("none");
}

TEST(Replayer, SaysWhichOfTheThingsThatACoreShowsDiffers) {
  Recording recording = recorded();
  Shown& shown = recording.steps[5].shown;
  const Shown before = shown;
  shown.status ^= 1U;
  EXPECT_TRUE(has(first_difference(recording), "status_of differs"));
  shown = before;
  shown.roster ^= 1U;
  EXPECT_TRUE(has(first_difference(recording), "the roster differs"));
  shown = before;
  shown.vaults ^= 1U;
  EXPECT_TRUE(has(first_difference(recording), "the table of the vaults differs"));
  shown = before;
  shown.outstanding ^= 1U;
  EXPECT_TRUE(has(first_difference(recording), "outstanding"));
  shown = before;
  shown.deadline = shown.deadline + Duration::seconds(1);
  EXPECT_TRUE(has(first_difference(recording), "next_deadline was "));
  shown = before;
  EXPECT_EQ(first_difference(recording), std::nullopt);
}

TEST(Replayer, TakesAnotherOrderWithinAStepForNoDifference) {
  EmitEvent first{.event = {.number = 4, .message = "a"}};
  EmitEvent second{.event = {.number = 5, .message = "b"}};
  const std::vector<std::string> before = encodings_of({first, LaunchWorker{HostId(1)}, second});
  std::swap(first.event.number, second.event.number);
  EXPECT_EQ(encodings_of({second, first, LaunchWorker{HostId(1)}}), before);
}

TEST(Replayer, BeginsATermWithWhatWasDurable) {
  Job job;
  job.tell(12, 9);
  job.begin(8, 5);  // of what was written, not all was on the disk
  job.tell(10, 10);
  job.begin(10, std::nullopt);
  job.tell_all();
  Recording recording = job.recording();
  EXPECT_EQ(first_difference(recording), std::nullopt);
  auto& begun = std::get<Begun>(recording.steps[13].what);
  EXPECT_EQ(begun.events, 8U);
  EXPECT_EQ(begun.in_snapshot, 5U);
  begun.events = 9;
  EXPECT_TRUE(has(first_difference(recording), "step 13, a core of 9 events at ")) << "the net holds what it showed";
}

TEST(Recording, HoldsTheSpecAndTheFactsOfItsLauncher) {
  const JobSpec spec = spec_of_story();
  JobSpec read = decode_recording(encode_recording(recorded()))->spec;
  EXPECT_EQ(pool_of(read).size(), pool_of(spec).size());
  EXPECT_EQ(read.launch.facts().name, spec.launch.facts().name);
  read.launch = spec.launch;
  EXPECT_EQ(read, spec);
}

TEST(Recording, IsRefusedInAnotherFormat) {
  const Result<Recording> read = decode_recording("monarch-sim recording 99\n");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "it does not begin with 'monarch-sim recording 1'");
}

}  // namespace
}  // namespace monarch::sim
