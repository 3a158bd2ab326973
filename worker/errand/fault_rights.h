#pragma once

// fault_rights(): which faults this host allows that need more than processes of the job's own user. Nothing is
// changed.
//
// Thread: the only one of its process (it forks).

#include <string>
#include <string_view>
#include <vector>

#include "transport/messages/check.h"

namespace monarch {

FaultRights fault_rights();

// Of what `nft list tables` says: those that cut a host off for a drill.
std::vector<std::string> drill_tables(std::string_view listing);

}  // namespace monarch
