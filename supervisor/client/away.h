#pragma once

// elsewhere.json of a job's directory: the job lives on another machine, where its supervisor is (`supervisor: {on:
// first}`), and this directory only says which. It is written before anything is started there, and again once it is
// known where things lie there. How that machine is reached says the spec beside it; the job has the same id there.
//
//   {"v":1,"host":"node01","bundle":"<sha256>","monarch":"/home/u/.cache/monarch/bundle/<sha256>/bin/monarch",
//    "directory":"/home/u/.local/state/monarch/jobs/hello-3fa2","monarch_bytes":5000000,"worker_bytes":3600000}
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/base/result.h"

namespace monarch {

inline constexpr char kAwayFile[] = "elsewhere.json";
inline constexpr std::size_t kAwayBytes = 64U << 10U;  // a larger file is not ours

struct Away {
  std::string host;       // as the spec names it
  std::string bundle;     // sha256 of what was shipped there
  std::string monarch;    // there, absolute; empty: the start did not come so far
  std::string directory;  // the job's there, absolute; empty: likewise
  // Of monarch and of its worker in the bundle, by which it is found there again; 0: not known.
  std::uint64_t monarch_bytes = 0;
  std::uint64_t worker_bytes = 0;
  bool operator==(const Away&) const = default;
};

std::string write_away(const Away& elsewhere);
// kInvalid: it names no host, or says something that nobody can mean.
Result<Away> parse_away(const std::string& json);

}  // namespace monarch
