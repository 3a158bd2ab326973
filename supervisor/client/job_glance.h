#pragma once

// JobGlance: what is known, in a line, of a job that lives on another machine, as of when somebody here last spoke with
// it. It is kept beside elsewhere.json, in elsewhere.seen.json, for commands that must not wait for a network; it
// proves nothing.
//
//   {"v":1,"life":"live","phase":"running","exit_code":null,"running":8}
//
// Thread: values; read_glance() and write_glance() touch the file system.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/journal/secure_directory.h"
#include "transport/base/json.h"
#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

struct JobGlance {
  std::string life;   // "live", "abandoned", "ended"; empty: nothing is known
  std::string phase;  // as `ps` shows it: letters and blanks, whoever said it
  std::optional<std::int64_t> exit_code = {};
  std::uint64_t running = 0;  // ranks
  bool operator==(const JobGlance&) const = default;
};

Json glance_json(const JobGlance& glance);
// What cannot be meant is left out.
JobGlance glance_of(const Json& json);

struct SeenJob {
  JobGlance glance;
  WallTime at;
};
// Nothing: nobody has spoken with it since it was started.
std::optional<SeenJob> read_glance(const SecureDirectory& job);
Status write_glance(const SecureDirectory& job, const JobGlance& glance);

}  // namespace monarch
