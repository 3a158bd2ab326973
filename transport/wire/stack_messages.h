#pragma once

// How the messages of base/stack_messages.h are written: as msgpack arrays of their fields, in this order. A new field goes last.
//
// Thread: values.

#include <monarch/codec.hpp>

#include "transport/base/stack_messages.h"
#include "transport/wire/codec.h"

namespace monarch {

MONARCH_FIELDS(TakeStacks, process, number, limit, patience, all_threads, native);
MONARCH_FIELDS(ProcessStacks, pid, name, state, tool, end, detail, output, cut);
MONARCH_FIELDS(Stacks, number, end, detail, processes, untold_processes);
MONARCH_FIELDS(StacksRequest, ranks, limit, all_threads, native);
MONARCH_FIELDS(RankStacks, rank, generation, host, stacks);

}  // namespace monarch
