#pragma once

// DrillCore: decides what a drill does when: waits until the job has settled, watches it undisturbed, has each fault of
// its scenario strike somebody who is well, waits until the job has recovered, and ends. What it decides is performed
// elsewhere, and what came of it is told here.
//
//   settling ── all gangs up for `settle` ──▶ control ── `control` is over ──▶ faults ── none is left, and none is open
//   ──▶ last (what comes late is waited for) ──▶ over
//
// From each of these: over, when the job ends, its drill is stopped, or a guard of it trips.
//
// A blow:  due ── its target is well ──▶ told ── accepted ──▶ striking ── in effect ──▶ open ── taken back, recovered
// from ──▶ closed
//
// Thread: a value; no clock, no I/O.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/core/job_watch.h"
#include "supervisor/drill/core/record.h"
#include "supervisor/drill/core/scenario.h"
#include "transport/base/ids.h"

namespace monarch::drill {

struct DrillNow {
  Instant at;
  WallTime wall;
};

struct DrillPlan {
  Scenario scenario;
  std::uint64_t seed = 0;
  std::vector<DrillMesh> meshes;
  DrillTimes times;
  Duration settles_within = Duration::seconds(180);  // else the drill is over
  // Whether a rank on a host is meant by a target's words, `random` among them.
  std::function<bool(const FaultTarget&, RankId rank, const std::string& host)> meant;
};

// Whom a fault of the scenario strikes when it is drawn for the so manieth time; nothing: nobody whom it may is well.
std::optional<BlowTarget> drawn_target(const DrillPlan& plan, const JobWatch& watch, std::uint32_t entry,
                                       std::uint32_t draw);

// ---- what it wants done ----

struct TellOfBlow {  // answered by on_told()
  Blow blow;
};
struct StrikeNow {  // answered by on_struck(), and where that went well by on_taken_back() once it has lasted
  Blow blow;
};
struct TakeBack {  // before its time
  std::uint32_t number = 0;
};
struct TellTakenBack {
  Blow blow;
};
// The gangs of these ranks, and their hosts, are as if they had not failed.
struct Forgive {
  std::vector<RankId> ranks;
};
// Whether a rank runs twice; answered by on_looked(), and nobody is struck before. Where a job has too many hosts to
// look at each: those that the blow struck, and those that its ranks are on now.
struct LookForRanks {
  std::vector<std::string> hosts;
};
struct SayPhase {
  std::string words;  // one line for people
};
using DrillAction = std::variant<TellOfBlow, StrikeNow, TakeBack, TellTakenBack, Forgive, LookForRanks, SayPhase>;

struct StruckSeen {
  std::string error;  // why it took no effect; empty: it is in effect
  std::vector<std::int32_t> struck;
  WallTime struck_at;
  WallTime seen_at;
  Duration clock_error;
};

class DrillCore {
 public:
  explicit DrillCore(DrillPlan plan);

  void on_status(const JobStatus& status, DrillNow now);
  void on_event(const JobEvent& event, DrillNow now);
  void on_told(std::uint32_t number, const std::string& refused, DrillNow now);  // empty: it was accepted
  void on_struck(std::uint32_t number, const StruckSeen& seen, DrillNow now);
  // `felt`: nothing where nobody can say.
  void on_taken_back(std::uint32_t number, const std::string& error, std::optional<bool> felt, DrillNow now);
  void on_looked(DrillNow now);
  void on_tick(DrillNow now);
  // Where the drill has not struck it, something else goes wrong here: what lasts is taken back.
  void on_supervisor_lost();
  // The job has ended, and another one goes on from it.
  void on_new_job(DrillNow now);
  // The job has ended, somebody wants no more of it, or the supervisor refuses to be drilled on.
  void cut_short(const std::string& why, DrillNow now);

  std::vector<DrillAction> take_actions() { return std::exchange(actions_, {}); }
  bool over() const { return phase_ == Phase::kOver; }
  bool is_cut_short() const { return !cut_short_.empty(); }
  const JobWatch& watch() const { return watch_; }
  // Blows and times of phases are written into it; the rest is the caller's.
  void write(DrillRecord& record) const;

 private:
  enum class Phase : std::uint8_t { kSettling, kControl, kFaults, kLast, kOver };
  enum class Life : std::uint8_t { kDue, kTold, kStriking, kOpen, kClosed };
  struct Tracked {
    Blow blow;
    const Fault* fault = nullptr;
    Life life = Life::kDue;
    Instant due;
    Instant struck;
    Instant quiet_since = Instant::never();  // all that it concerns is well again, since then
    bool seen = false;                       // the job has told of it
    bool back = false;                       // taken back, or there is nothing to
  };
  struct Entry {
    std::uint32_t draws = 0;
    std::uint32_t fired = 0;
    Instant next = Instant::never();  // kAt, kEvery: when it is due
  };

  void to(Phase phase, DrillNow now);
  void settle(DrillNow now);
  void say_waits(DrillNow now);
  std::string awaited(DrillNow now) const;
  void skip_unfired(DrillNow now);
  void watch_goodput(DrillNow now);
  void make_due(DrillNow now);
  void add_due(std::uint32_t entry, Instant due, DrillNow now);
  void strike_due(DrillNow now);
  std::string obstacle(const Tracked& tracked) const;
  void close_open(DrillNow now);
  bool recovered(const Tracked& tracked) const;
  void close(Tracked& tracked);
  void skip(Tracked& tracked, const std::string& why);
  void end_faults(DrillNow now);
  bool concerns(const Tracked& tracked, const JobEvent& event) const;
  std::vector<RankId> ranks_of(const Blow& blow) const;
  std::vector<std::string> hosts_of(const Blow& blow) const;
  Tracked* find(std::uint32_t number);
  std::size_t open_blows() const;
  Duration longest_recovery(const Tracked& tracked) const;

  DrillPlan plan_;
  JobWatch watch_;
  Phase phase_ = Phase::kSettling;
  Instant since_;                        // of the phase
  Instant up_since_ = Instant::never();  // kSettling: all gangs are
  Instant said_at_ = Instant::never();   // the last line for people
  WallTime control_from_;
  WallTime control_to_;
  WallTime faults_to_;
  Instant faults_from_;
  std::vector<Entry> entries_;
  std::deque<Tracked> blows_;
  std::uint32_t looking_ = 0;
  std::string cut_short_;
  std::uint64_t steps_at_control_ = 0;
  std::uint64_t steps_at_faults_ = 0;
  struct Pace {
    Instant at;
    std::uint64_t steps = 0;
  };
  std::deque<Pace> pace_;  // of the last kPaceWindow
  std::vector<DrillAction> actions_;
};

}  // namespace monarch::drill
