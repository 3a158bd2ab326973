#include "transport/base/launcher_variables.h"

#include <algorithm>
#include <array>

namespace monarch {

namespace {

// What tells a process its place among those that a launcher started together, by launcher. What is a whole job's
// (SLURM_JOB_ID, SLURM_JOB_NODELIST, PBS_JOBID) stays, and so does what a user sets for a library (I_MPI_FABRICS,
// MV2_USE_CUDA).
constexpr auto kForeignNames = std::to_array<std::string_view>({
    // Slurm, of a task and of its node: srun(1), OUTPUT ENVIRONMENT VARIABLES
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_TASK_PID",
    "SLURM_GTIDS",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_ON_NODE",
    "SLURM_GPUS_ON_NODE",
    "SLURM_STEPID",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_SHARDS_ON_NODE",
    "SLURMD_NODENAME",
    // Intel MPI and MPICH's hydra, beside PMI's
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    // PBS, of a task: pbs_tmrsh(8); Cray's aprun: intro_alps(1); LSF's blaunch
    "PBS_NODENUM",
    "PBS_TASKNUM",
    "PBS_VNODENUM",
    "ALPS_APP_PE",
    "LSF_PM_TASKID",
    "LSB_REMOTEINDEX",
});
constexpr auto kForeignPrefixes = std::to_array<std::string_view>({
    "PMI",                // PMI_, PMI2_ and PMIX_: the process manager interfaces
    "OMPI_",              // Open MPI: mpirun(1)
    "MV2_COMM_WORLD_",    // MVAPICH2's mpirun_rsh
    "MVP_COMM_WORLD_",    // MVAPICH 3
    "PALS_",              // HPE's mpiexec(1)
    "JSM_NAMESPACE_",     // IBM's jsrun(1)
    "FLUX_",              // flux-environment(7)
    "SLURM_STEP_",        // srun(1): the step's, not the job's
    "SLURM_NTASKS_PER_",  // and the options that made it
    "SLURM_CPU_BIND",
    "SLURM_MEM_BIND",
    "SLURM_GPU_BIND",
    "SLURM_SRUN_COMM_",
    "SLURM_TOPOLOGY_ADDR",
    "SLURM_PMI",
});

constexpr auto kTalkingNames =
    std::to_array<std::string_view>({kNotifyVariable, kQuestionsVariable, kEventsVariable, kVaultVariable,
                                     kPostVariable, kTensorsVariable, kTrustVariable, kRankLibraryVariable,
                                     "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"});

}  // namespace

bool is_talking_variable(std::string_view name) {
  return std::find(kTalkingNames.begin(), kTalkingNames.end(), name) != kTalkingNames.end();
}

bool is_committed_variable(std::string_view name) { return name.starts_with("MONARCH_COMMITTED_"); }

bool is_foreign_launcher_variable(std::string_view name) {
  return std::find(kForeignNames.begin(), kForeignNames.end(), name) != kForeignNames.end() ||
         std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace monarch
