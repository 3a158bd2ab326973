#pragma once

// What is asked of Slurm: the words of each command, and what its answer says. Slurm's own commands are run, in the
// form that has been stable over its versions: no JSON, formats that are given, one item a line.
//
// Thread: pure functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

using Words = std::vector<std::string>;

// NAME=value of what srun, and each process of a step, are given of an environment: who its user is, where programs
// are, where Slurm is. Nothing else: an SLURM_… or SRUN_… of an allocation is an option to srun, and what a shell has
// may be secret.
Words slurm_environment(const std::function<const char*(const char*)>& lookup);

// What stands before the next bar of a line, which is taken as well.
std::string_view take_column(std::string_view& line);

// The command with that environment and no other.
Words in_environment(const Words& environment, Words command);

// A step of one process on each of these nodes, beside others; none of them ends with anybody but itself.
struct SlurmStepOrder {
  std::uint32_t job = 0;
  Words nodes;
  std::string name;
  Words environment;
  Words program;
  Words gres = {};  // options; see slurm_gres.h
};
Words step_command(const SlurmStepOrder& order);

// How the steps of our job are called: that of a node's worker, and those that look for it and end it.
std::string worker_step_name(const std::string& job_id, const std::string& node);
// That of many; no node is called so.
std::string shared_step_name(const std::string& job_id, Term term, std::uint32_t number);
std::string end_step_name(const std::string& job_id, const std::string& node);
// Of somebody's who looks at the node, or strikes it.
std::string check_step_name(const std::string& job_id, const std::string& node);

struct SlurmStep {
  std::string id;  // "7.3"
  std::string name;
};
Words steps_query(std::uint32_t job, const Words& environment);
Result<std::vector<SlurmStep>> read_steps(std::string_view answer);

// SIGKILL to all of a step's processes.
Words cancel_step_command(const std::string& step_id, const Words& environment);

// What a job is doing, and the state of a node, which is a word.
Words job_state_query(std::uint32_t job, const Words& environment);
Words node_state_query(const std::string& node, const Words& environment);

// kEnded: it never leaves that state, and no process of it runs. Of a job that ends, Slurm hides how behind
// COMPLETING, and may tell why.
enum class SlurmJobState : std::uint8_t { kWaiting, kRunning, kEnding, kEnded, kUnknown };
struct SlurmJobWord {
  SlurmJobState state = SlurmJobState::kUnknown;
  std::string word;       // "TIMEOUT"
  std::string submitted;  // when, as Slurm writes it: who has the number of a job may be another one tomorrow
  std::string nodes;      // that it has, as Slurm writes them
};
SlurmJobWord read_job_state(std::string_view answer, std::uint32_t job);
// Of a job that is over, or waits for nodes again: did Slurm take its nodes, so that it may be submitted again, rather
// than somebody cancel it? Empty: Slurm does not know the job.
bool was_taken(std::string_view word);
// Slurm's word for a job that it does not know, or not any more.
bool says_no_such_job(std::string_view words);
// Whether this host can say who it is to Slurm.
Words munge_query(const Words& environment);
// That munge, or whatever else, does not vouch for who asks.
bool says_not_authenticated(std::string_view words);
// Whether the node answers its controller: what Slurm says has ended there has.
bool node_answers(std::string_view state);

}  // namespace monarch
