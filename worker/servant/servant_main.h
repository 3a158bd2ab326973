#pragma once

// servant_main(): what the main of a process is that serves beside a daemon, as its keeper starts it: with a setup as
// sealed memory in its standard input. It ends by TERM, or with its keeper.
//
// Thread: main, alone.

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/result.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"
#include "transport/wire/codec.h"

namespace monarch {

struct ServantLimits {
  int map_from_bytes = 128 << 10;  // an allocation of so many goes back to the system once it is freed
};

// Nobody may look into it, and it may have as many descriptors as the system lets it.
void prepare_servant(const std::string& kind, const ServantLimits& limits);
// The bytes of its setup, which nobody finds in its standard input any more.
Result<std::string> take_servant_setup();
Status die_with(pid_t keeper);

// `Setup` has host_name and keeper_pid. `serve`: a Status of a Setup and a SignalFd that delivers TERM, once it has
// served. Returns the exit code.
template <class Setup, class Serve>
int servant_main(const std::string& kind, const ServantLimits& limits, const Serve& serve) {
  prepare_servant(kind, limits);
  const auto run = [&]() -> Status {
    // Before any thread: they inherit the mask.
    MONARCH_ASSIGN(auto signals, SignalFd::create({SIGTERM}));
    MONARCH_ASSIGN(const std::string bytes, take_servant_setup());
    MONARCH_ASSIGN(Setup setup, decode_payload<Setup>(bytes));
    MONARCH_TRY(die_with(setup.keeper_pid));
    log_set_name(text(kind, ' ', setup.host_name));
    return serve(std::move(setup), *signals);
  };
  const Status served = run();
  if (served.ok()) return kExitOk;
  log_error("the ", kind, " cannot serve: ", served.error().message);
  return kExitInternal;
}

}  // namespace monarch
