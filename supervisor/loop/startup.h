#pragma once

// What a supervisor needs before it decides anything: the job's lock, spec and journal, its keys and the ports it had.
// Each step that fails says why and with which exit code.
//
// Thread: the supervisor's main thread, before any other starts.

#include <map>
#include <memory>
#include <string>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/inheritance.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/journal_files.h"
#include "supervisor/journal/recover.h"
#include "supervisor/journal/secure_directory.h"
#include "supervisor/spec/spec.h"
#include "transport/zmq/curve.h"

namespace monarch {

struct StartError {
  int exit_code = 0;
  std::string message;
};

// Either of the two is set.
template <class T>
struct Started {
  std::unique_ptr<T> value;
  StartError error;
};

struct JobFiles {
  SecureDirectory directory;
  std::string job_id;
  std::string root;  // of the state directory: hosts/ is beside jobs/
  std::unique_ptr<JobLock> lock;
  LoadedSpec spec;
  std::map<std::string, std::string> shell;  // of the shell that started the job: what $(env.NAME) names
  std::unique_ptr<JournalFiles> journal_files;
  RecoveredJournal journal;
  std::string log_directory() const { return directory.path() + "/logs"; }
};

// As the job's folder has it.
Result<LoadedSpec> load_job_spec(const SecureDirectory& directory);

Started<JobFiles> open_job_files(const std::string& job_directory, bool force_takeover = false);

// What a job that begins has of the one that it goes on from; of no job: it is the first. An error where that cannot be
// read: to begin anew would lose what was computed.
Result<Inheritance> inheritance_of(const JobFiles& files);

// The job's server pair: made by its first supervisor, found by later ones. Mode 0600, removed when the job has ended.
// What a loss of power has left of one that was not durable is replaced: then no worker knows it.
Result<CurveKeyPair> job_keys(const SecureDirectory& directory);

// A supervisor that comes back binds the ports that its workers know.
struct KnownPorts {
  std::uint16_t control = 0;  // 0: any
  std::uint16_t bulk = 0;
};
KnownPorts known_ports(const SecureDirectory& directory);
Status keep_ports(const SecureDirectory& directory, const KnownPorts& ports);
// Both have to be durable as the first decision has: no worker knows either of them before.
std::vector<FileBeside> files_of_ports();

// Whether a supervisor of a later term has left its address in the job's folder: it holds the job, whoever holds the
// lock.
bool has_successor(const SecureDirectory& directory, Term term);

JobUuid make_job_uuid();

}  // namespace monarch
