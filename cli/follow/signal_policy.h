#pragma once

// What a signal to a viewer means. Ctrl-C in `run`: an orderly stop, then kill, then the viewer leaves while the
// supervisor goes on killing. A watcher (`attach`, `logs -f`) only ever detaches. Ctrl-Z is not here: it stops the
// viewer alone, as the system does.
//
// Thread: a value.

#include <cstdint>
#include <initializer_list>

namespace monarch {

enum class ViewerKind : std::uint8_t {
  kOwner,    // `run`: the job ends with it
  kWatcher,  // `attach`, `logs -f`
};

enum class SignalAction : std::uint8_t {
  kStop,     // ask for an orderly stop
  kKill,     // ask for a kill
  kLeave,    // exit now
  kDetach,   // exit now, the job goes on
  kForward,  // send it to the ranks
  kIgnore,
};

struct SignalAnswer {
  SignalAction action = SignalAction::kIgnore;
  int exit_code = 0;         // of the job for kStop (0: its own), of the viewer for kLeave and kDetach
  bool interrupted = false;  // kStop: the user's own Ctrl-C
};

class SignalPolicy {
 public:
  explicit SignalPolicy(ViewerKind kind) : kind_(kind) {}

  SignalAnswer on_signal(int number);
  // A stop was asked for in another way (--timeout): the next Ctrl-C kills.
  void stop_asked() { stage_ = stage_ == Stage::kRunning ? Stage::kStopping : stage_; }

  // Those that a viewer of this kind takes from the system.
  static std::initializer_list<int> signals(ViewerKind kind);

 private:
  enum class Stage : std::uint8_t { kRunning, kStopping, kKilling };

  SignalAnswer on_interrupt();
  SignalAnswer on_terminate(int exit_code);

  ViewerKind kind_;
  Stage stage_ = Stage::kRunning;
};

}  // namespace monarch
