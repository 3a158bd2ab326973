#pragma once

// Viewers: the supervisor's side of who looks on and asks: the socket and the port for viewers, what they ask of ranks
// and hosts, idleness, the end of the program that the job is there for, and the descriptors that all who come take.
//
// Thread: the process's main thread. Lifetime: within that of what it shares; after close() workers and hosts may be
// gone.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/client/link/endpoint.h"
#include "supervisor/loop/hosts.h"
#include "supervisor/loop/shared.h"
#include "supervisor/loop/tie.h"
#include "supervisor/loop/workers.h"
#include "supervisor/viewers/control_server.h"
#include "supervisor/viewers/idle_timer.h"
#include "supervisor/viewers/viewer_port.h"
#include "transport/zmq/descriptor_watch.h"

namespace monarch {

class Viewers {
 public:
  Viewers(Shared& shared, Workers& workers, Hosts& hosts);

  Status open();
  // Nobody is served any more; what viewers were sent is theirs to read.
  void close() {
    descriptors_.reset();
    server_.reset();
  }
  // After the guard has started another supervisor: from here on ports are closed where descriptors are scarce.
  void watch_descriptors();
  void remember_history();
  // Of a job that is there for a program, whose end may have come while no supervisor lived: that it stops then.
  void watch_tie();

  ControlServer& server() { return *server_; }
  IdleTimer& idle() { return *idle_; }
  JobStatus status() const;

 private:
  std::optional<ViewerDoorAddress> open_port(const std::string& socket);
  ControlHandlers handlers();
  void signal_ranks(const SignalRequest& request, const ControlHandlers::Answer& answer);
  Result<std::string> operate(const OperatorRequest& request);
  Result<std::string> hold_ranks(HoldRequest request);
  Result<std::string> note_drill(const DrillNotice& notice);
  void answer_durably(Result<std::string> words, const ControlHandlers::Answer& answer);

  Shared& shared_;
  Workers& workers_;
  Hosts& hosts_;
  std::unique_ptr<IdleTimer> idle_;
  std::unique_ptr<Tie> tie_;  // nothing: the job is there for nobody in particular
  std::unique_ptr<ViewerPort> port_;
  std::optional<ListenerDoor> port_door_;  // until it is watched
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<DescriptorWatch> descriptors_;
};

}  // namespace monarch
