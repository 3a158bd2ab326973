#pragma once

// Selector: which ranks of a job a command line means, by --mesh, --at, --rank, --host and --generation. All that is
// written must hold at once; nothing written selects all. What does not exist is refused with what does.
//
// Thread: a value that does not change after it was made.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/args/say.h"
#include "cli/args/values.h"
#include "supervisor/core/spec/job_spec.h"
#include "transport/messages/viewer.h"

namespace monarch {

// As written; nothing: not written.
struct SelectorWords {
  std::optional<std::string> mesh = {};         // a mesh
  std::optional<std::string> at = {};           // replica=2,gpu=0:4
  std::optional<std::string> ranks = {};        // 3,7-9, mesh-wide
  std::optional<std::string> hosts = {};        // node[05-07],node11
  std::optional<std::string> generations = {};  // 2 or 2,4-5
  std::vector<std::string> named = {};          // hosts that the spec does not name, and the job has
};

class Selector {
 public:
  // All of a job.
  Selector() = default;
  static std::variant<Selector, Complaint> parse(const SelectorWords& words, const JobSpec& spec);

  bool selects_all() const { return all_; }
  bool names_hosts() const { return !hosts_.empty(); }
  // By mesh, coordinates and number.
  bool has(RankId rank) const;
  bool has_host(std::string_view host) const;
  bool has_generation(std::uint64_t counter) const;
  bool has(RankId rank, std::string_view host, std::uint64_t generation) const {
    return has(rank) && has_host(host) && has_generation(generation);
  }
  // An event is meant if what it says of itself is; one of the whole job is meant where nothing is written.
  bool has(const JobEvent& event) const;

 private:
  bool all_ = true;
  bool by_rank_ = false;                  // --at or --rank is written
  std::vector<std::string> meshes_;       // names, by MeshId
  std::vector<std::vector<bool>> ranks_;  // by MeshId: which are meant
  std::optional<std::string> mesh_;
  std::vector<std::string> hosts_;  // empty: all
  std::optional<RankList> generations_;
};

// The ranks of a status that are meant, the meshes and hosts that have some (a host that is named is there in any
// case).
JobStatus selected_part(JobStatus status, const Selector& selector);

// The job is there, and none of it is meant.
Complaint nothing_selected(const std::string& job_id);

}  // namespace monarch
