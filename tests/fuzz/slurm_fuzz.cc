// What Slurm's commands answer: whatever the bytes are, reading them ends, and what comes out of them can be given to
// Slurm again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/launch/slurm/job_end.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "supervisor/launch/slurm/slurm_gres.h"
#include "supervisor/launch/slurm/slurm_job_facts.h"
#include "supervisor/launch/slurm/slurm_requests.h"
#include "supervisor/launch/slurm/slurm_watch.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"

namespace {

// What is asked for with what was read is one word for each option.
void ask_for_one_like(const monarch::SlurmJobFacts& facts) {
  using namespace monarch;
  for (const auto& word :
       node_request_command({.token = {}, .name = "a", .wish = {}, .like = facts, .exclude = {}, .environment = {}})) {
    MONARCH_ASSERT(word.starts_with("--wrap=") || word.find('\n') == std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  const auto steps = read_steps(answer);
  if (steps.ok()) {
    for (const SlurmStep& step : *steps) MONARCH_ASSERT(!step.id.empty());
  }
  (void)read_job_state(answer, 7);
  (void)node_answers(answer);
  (void)says_no_such_job(answer);
  (void)says_not_authenticated(answer);
  (void)read_job_end(answer, 7);
  (void)read_kill_wait(answer);
  (void)read_submitted(answer);
  (void)is_refusal(answer);
  if (const auto token = read_token(answer)) MONARCH_ASSERT(read_token(to_text(*token)) == token);
  for (const RequestedJob& found : read_requests(answer, "0123")) MONARCH_ASSERT(found.token.uuid == "0123");
  for (const auto& [node, seen] : read_nodes(answer)) MONARCH_ASSERT(!node.empty() && !seen.words.empty());
  if (const auto facts = read_job_facts(answer, 7); facts.ok()) ask_for_one_like(*facts);
  const auto job = read_job_gres(answer, 7);
  if (!job.ok()) return 0;
  MONARCH_ASSERT(!job->empty() && job->size() <= limits::kHostlistNames);
  for (const auto& [node, gres] : *job) {
    MONARCH_ASSERT(is_host_name(node));
    for (const auto& option : gres_options(*job, node)) {
      MONARCH_ASSERT(option.starts_with("--gres=") || option.starts_with("--gpus="));
      MONARCH_ASSERT(
          std::none_of(option.begin(), option.end(), [](char c) { return c == ' ' || c == '\n' || c == '\0'; }));
    }
    if (job->size() > 64) break;  // each asks all others
  }
  return 0;
}
