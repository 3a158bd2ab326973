#pragma once

// Liveness: which hosts are silent, and how far their clocks are from ours. It judges from beats alone and is not
// journalled: after a restart every host counts as heard at that moment. Silence proves nothing but silence; what
// follows from it is the core's to decide.
//
// A stall of our own is added to every deadline: what we did not read, nobody failed to send. While we are not well
// ourselves, verdicts take longer; when many hosts go silent together, they are held. Statistics of a host's beats may
// make it suspect sooner, and nothing more: no host is ever declared before it was silent for lost_after.
//
// Thread: one.

#include <optional>
#include <vector>

#include "supervisor/core/health/arrivals.h"
#include "supervisor/core/health/local_health.h"
#include "supervisor/core/health/mass_silence.h"
#include "supervisor/core/spec/job_spec.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/worker.h"

namespace monarch {

enum class HostHealth : std::uint8_t { kUnknown, kFresh, kSuspect, kSilent };

struct HostVerdict {
  HostId host;
  HostHealth health = HostHealth::kFresh;
  Duration silence;
};

class Liveness {
 public:
  Liveness(const Supervision& supervision, std::size_t hosts);

  // A worker was launched, or this supervisor has just come back: the host is expected to speak from now on.
  void expect(HostId host, Instant now);
  void stop_expecting(HostId host);
  // An empty answer, or the host's return to kFresh.
  std::optional<HostVerdict> heard(HostId host, const Beat& beat, Instant now);
  // Every turn: transitions that the passing of time brought. `now` tells of our own stalls, too.
  std::vector<HostVerdict> turn(Instant now);
  Instant next_deadline() const;

  // Signs of our own health: a timer of ours ran late, a record of ours took long to be on the disk.
  void ran_late(Duration by, Instant now) { health_.ran_late(by, now); }
  void wrote(Duration took, Instant now) { health_.wrote(took, now); }
  std::uint32_t local_health() const { return health_.score(); }  // 0: well
  // Verdicts are held: many are silent together.
  const std::optional<MassSilence::Hold>& hold() const { return brake_.hold(); }

  // An instant of the host's clock on ours, with the uncertainty to either side. The estimate is the least delayed
  // beat's.
  Instant to_ours(HostId host, Instant theirs) const;
  Duration uncertainty(HostId host) const;
  // The host is this machine: its clock is ours.
  void same_clock(HostId host);
  // From beats that echo our ACK: the round trip.
  void round_trip(HostId host, Duration trip);
  Duration round_trip(HostId host) const;
  Duration silence(HostId host, Instant now) const;
  HostHealth health(HostId host) const;

 private:
  struct Peer {
    explicit Peer(Duration heartbeat) : arrivals(heartbeat) {}

    HostHealth health = HostHealth::kUnknown;
    Instant last_heard;
    Arrivals arrivals;
    bool held = false;               // there was a hold because of it, and it was not heard since
    std::optional<Duration> offset;  // ours − theirs, never below the truth: delay only adds
    Duration trip;
    bool same_clock = false;
  };

  HostHealth judge(const Peer& peer, Instant now) const;
  Duration suspect_after(const Peer& peer) const;
  Instant declared_at(const Peer& peer) const;
  void brake(Instant now);

  Supervision supervision_;
  std::vector<Peer> peers_;
  LocalHealth health_;
  MassSilence brake_;
  std::optional<Instant> last_turn_;
  Instant judges_from_;  // after a stall of ours: what came meanwhile is read first (I13)
};

}  // namespace monarch
