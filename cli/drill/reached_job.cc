#include "cli/drill/reached_job.h"

#include <poll.h>

#include "supervisor/client/new_job.h"
#include "supervisor/client/remove_job.h"
#include "supervisor/loop/startup.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kUuidWithin = Duration::seconds(10);

}  // namespace

Result<ReachedJob> reached_job(const JobView& view, const JobSpec& spec) {
  MONARCH_ASSIGN(const StateDir state, open_state());
  // A supervisor that has just said that it is ready may be about to write it.
  auto uuid = uuid_of_job(state, view.id());
  for (const Instant end = boot_now() + kUuidWithin; !uuid && boot_now() < end; uuid = uuid_of_job(state, view.id())) {
    (void)::poll(nullptr, 0, 20);
  }
  if (!uuid) return Error{ErrorCode::kNotFound, text("the journal of ", view.id(), " does not say its uuid")};
  ReachedJob reached{.job = {.uuid = *uuid, .ports = {}, .directory = view.path()}, .pool = pool_of(spec)};
  const KnownPorts ports = known_ports(view.directory().directory);
  for (const std::uint16_t port : {ports.control, ports.bulk}) {
    if (port != 0) reached.job.ports.push_back(port);
  }
  // Hosts on request are called what they are by now.
  if (const auto status = view.status(spec); status.ok()) {
    for (std::size_t i = 0; i < reached.pool.size() && i < status->hosts.size(); ++i) {
      reached.pool[i].name = status->hosts[i].name;
    }
  }
  return reached;
}

}  // namespace monarch
