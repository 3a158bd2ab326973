#pragma once

// The file `promise` in a worker's state directory: the highest term that this worker has promised, as decimal text. It
// is durable before write_promise() returns, so that no supervisor of a lower term is obeyed after a crash of the host.
//
// Thread: any; it waits for the disk, so not one that has to answer in time.

#include <string>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch::daemon {

// Term 0 where there is none; kInvalid where the file holds something else than a term.
Result<Term> read_promise(const std::string& directory);

// Makes the directory and those above it, 0700, where they are missing.
Status write_promise(const std::string& directory, Term term);

// The end of the worker: removes the file, and the directory and the one above it where nothing else is in them.
void remove_promise(const std::string& directory);

}  // namespace monarch::daemon
