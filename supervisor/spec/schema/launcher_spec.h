#pragma once

// LauncherSpec: a launcher's own part of the spec: its keys, what is built of them, and what it cannot do. Each stands
// in the launcher's folder (supervisor/launch/NAME/NAME_spec.cc).
//
// Thread: constant data; pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "supervisor/spec/yaml/local_path.h"
#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/limits.h"

namespace monarch {

// The key that says how large the pool is, where it is written, and how messages put it.
struct PoolKey {
  std::string path;
  std::string called;  // in messages
  const YamlNode* node = nullptr;
  std::string_view verb;       // between that and the number
  bool counts = false;         // it is a number, that of the hosts
  std::string_view one_host;   // "host", "node"
  std::string_view more_by{};  // what makes a pool of a size, before its number: "sbatch -N "
};

struct LauncherSpec {
  std::string_view name;          // "ssh"
  std::string_view flag_words;    // what `--launch` takes of it
  std::string_view flag_key;      // what it writes behind the colon: "hosts"
  bool flag_counts = false;       // that is a number; else hosts by name, and needed
  std::span<const KeyRow> rows;   // launch.NAME, and all below
  std::span<const KeyHelp> help;  // of the same
  // `node` may be nothing, or no map: what is wrong with that is reported already. `key` is that of launch.NAME.
  Launch (*build)(const YamlNode* node, Place key, const PathBases& bases, Report& report);
  PoolKey (*pool_key)(const JobSpec& job, const YamlNode* node);
  // Of a job that is complete: what this launcher cannot do; what it does not need, for people.
  void (*check)(const JobSpec& job, const YamlNode& root, Report& report);
  std::vector<std::string> (*notes)(const JobSpec& job);
};

// In the order of the documentation; the first is meant where a spec names none.
std::span<const LauncherSpec* const> launcher_specs();
const LauncherSpec* find_launcher_spec(std::string_view name);
// "local|ssh|slurm", as a schema has words.
const std::string& launcher_words();
// "local, ssh and slurm".
const std::string& launcher_list();

// What all launchers read alike: their keys, rows and help, and what is built of them. `hosts`: "hosts", "nodes".
#define MONARCH_SPARES_ROWS(launcher, hosts)                                                                  \
  {.path = launcher ".spares",                                                                                \
   .type = ValueType::kInteger,                                                                               \
   .default_value = "0",                                                                                      \
   .most = limits::kHostsPerJob,                                                                              \
   .or_map = true,                                                                                            \
   .doc = hosts " kept connected, without ranks"},                                                            \
      {.path = launcher ".spares.count",                                                                      \
       .type = ValueType::kInteger,                                                                           \
       .most = limits::kHostsPerJob,                                                                          \
       .required = true,                                                                                      \
       .doc = "how many"},                                                                                    \
      {.path = launcher ".spares.prepare",                                                                    \
       .type = ValueType::kList,                                                                              \
       .default_value = "[]",                                                                                 \
       .doc = "a program that warms a spare"},                                                                \
      {.path = launcher ".spares.prepare.[]", .type = ValueType::kText}, {                                    \
    .path = launcher ".spares.timeout", .type = ValueType::kDuration, .default_value = "10m", .least = 1'000, \
    .doc = "of that program; it is ended then"                                                                \
  }
#define MONARCH_SPARES_HELP(launcher, count, timeout)                                                              \
  {launcher ".spares", count}, {launcher ".spares.count", count},                                                  \
      {launcher ".spares.prepare", "[python3, warm.py]",                                                           \
       "It runs once on each spare as soon as that is connected, in the folder where ranks start (where meshes "   \
       "start in different ones, in that of the spec, or its copy), to fill caches or to load what ranks will "    \
       "load; it is given MONARCH_PREPARE=1 and no rank's numbers, and nothing of a mesh's `env`. "                \
       "Where it fails the host stays a spare, and is taken after those that are prepared. A host that is needed " \
       "meanwhile is given to its ranks once the program has been ended."},                                        \
  {                                                                                                                \
    launcher ".spares.timeout", timeout                                                                            \
  }
std::uint32_t spares_of(const YamlNode* launcher);
PrepareSpec prepare_of(const YamlNode* launcher, Report& report);
// Of a pool that names its hosts. `path`: "launch.ssh".
PoolKey pool_by_name(const std::string& path, const YamlNode* launcher);
// An installed monarch-worker; nothing: `auto`, or reported.
std::optional<std::string> worker_of(const YamlNode* launcher, const std::string& path, Report& report);

}  // namespace monarch
