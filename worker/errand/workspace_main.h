#pragma once

// `monarch-worker workspace`: makes a job's workspace on this host. On its standard input it gets the manifest of a
// tree; it answers which contents it lacks, gets those, and makes the tree in the worker's state directory. Every word
// that comes is a stranger's, and what came is only ever put where its hash says.
//
//   in:  "tree <bytes>\n", and so many bytes of a manifest
//   out: "need <number>\n" for each blob that is lacking, counted from 0 in the manifest's order, then "end\n"
//   in:  the bytes of those, one after the other
//   out: "at <bytes>\n" now and then; at last "built <bytes that came>\n", or "failed <word> <text>\n"
//
// Thread: the process's one.

#include <string>
#include <vector>

namespace monarch {

// After `workspace`: --job UUID --host NAME --job-id ID. Answers the exit code.
int workspace_main(const std::vector<std::string>& arguments);

}  // namespace monarch
