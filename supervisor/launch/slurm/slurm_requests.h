#pragma once

// One more node of Slurm: a job of its own, with one node that nothing runs on but what holds it. The words that ask
// for it, what Slurm says of such jobs, and the token by which they are found again: an answer may be lost, and a
// number may be another's tomorrow.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/spec/launch_spec.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "supervisor/launch/slurm/slurm_job_facts.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

// The comment of Slurm's job: whose it is, for which host, and which request of that host's it is. "monarch UUID
// 4 2.1".
struct RequestToken {
  std::string uuid;
  HostId host;
  std::uint64_t term = 0;
  std::uint32_t number = 0;  // within its term
  bool operator==(const RequestToken&) const = default;
};
std::string to_text(const RequestToken& token);
std::optional<RequestToken> read_token(std::string_view comment);

struct NodeOrder {
  RequestToken token;
  std::string name;    // of Slurm's job
  SlurmRequest wish;   // of the spec
  SlurmJobFacts like;  // for what the spec leaves open
  std::vector<std::string> exclude;
  Words environment;
};
Words node_request_command(const NodeOrder& order);
// What the job's own script runs: it ends once no worker of this job is there any more, or none has come within some
// minutes.
std::string holding_script(const std::string& uuid);
// sbatch's answer: the number of the job.
Result<std::uint32_t> read_submitted(std::string_view answer);
// Whether Slurm has understood and refused; else nobody knows what it has done, and whether it would do it again.
bool is_refusal(std::string_view words);

// All jobs of this user with that name that are known, ended ones as well.
Words requests_query(const std::string& name, const Words& environment);
struct RequestedJob {
  std::uint32_t job = 0;
  SlurmJobState state = SlurmJobState::kUnknown;
  std::string word;    // "PENDING"
  std::string reason;  // "Resources"
  std::string nodes;   // as Slurm writes them
  RequestToken token;
};
// Those with a token of this job of ours; others are nobody's business.
std::vector<RequestedJob> read_requests(std::string_view answer, const std::string& uuid);

Words cancel_job_command(std::uint32_t job, const Words& environment);

}  // namespace monarch
