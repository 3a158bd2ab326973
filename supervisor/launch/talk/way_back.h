#pragma once

// Where a worker calls back: the endpoints that its bootstrap names, whose address is known once its host is reached.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"

namespace monarch {

// "tcp://<any>:7000" with another address.
std::string endpoint_at(const std::string& endpoint, const std::string& address);
// Its port; 0: it has none.
std::uint16_t endpoint_port(const std::string& endpoint);

// Writes the address into `there`. A host may say anything: one that is not in numbers is a failure, by `untold`: who
// did not tell whom.
std::optional<LaunchFailure> call_back_at(Bootstrap& there, const std::string& address, std::string_view untold);

// As a worker reads it.
std::string bootstrap_frame(const JobUuid& job, Term term, const Bootstrap& there);

// Before a host is asked again to end its worker, after so many tries before: 0.5 s, twice that, …, 10 s.
Duration pause_before_retry(std::uint32_t tries);

}  // namespace monarch
