#pragma once

// One question for the stacks of ranks over a connection of its own, waited for: for a command that does nothing else.
//
// Thread: the caller's, with a loop of its own.

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/client/link/viewer_address.h"
#include "transport/base/result.h"
#include "transport/messages/stacks.h"

namespace monarch {

// How long a supervisor waits for a host of which so many ranks are asked for at once, each with this limit: a few are
// looked at at a time.
Duration patience_with_host(Duration limit, std::uint32_t ranks);

// An answer for each rank of the request, in its order; `hosts` are those of these ranks. It waits as long as the
// supervisor does for the host with the most of them, and of ranks that were not told of until then, or until the
// connection broke, the answer says so. Where nothing was told at all: kTimeout, for so long that it must be gone the
// supervisor said nothing; kInvalid: it does not do it, and says why; kGone: it has ended.
Result<std::vector<RankStacks>> ask_stacks(const ViewerAddress& address, const StacksRequest& request,
                                           const std::vector<std::string>& hosts);

}  // namespace monarch
