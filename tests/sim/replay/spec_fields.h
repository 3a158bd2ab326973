#pragma once

// How a JobSpec is written into a recording: a later tree feeds its core with the very spec, and need not draw it. A
// spec that is read has another launcher than the one that was written, with the same facts: the core knows no more.
//
// Thread: values.

#include <string>

#include "supervisor/core/spec/job_spec.h"
#include "transport/wire/codec.h"

namespace monarch {

MONARCH_FIELDS(PrepareSpec, program, timeout)
MONARCH_FIELDS(Allocation, job, nodes)
MONARCH_FIELDS(LaunchFacts, name, hosts, unnamed, pool, spares, prepare, one_machine, proves_ends, tunnels, outlasts,
               foretells, is_visited, has_host_keys, no_call_back, batch_system, allocation, waits_in_queue, on_request,
               on_preempt)

namespace sim {

struct RecordedLaunch {
  LaunchFacts facts;
  bool operator==(const RecordedLaunch& other) const { return encode_payload(facts) == encode_payload(other.facts); }
};
inline LaunchFacts facts_of(const RecordedLaunch& launch) { return launch.facts; }

}  // namespace sim

inline void codec_write(codec::Writer& writer, const Launch& launch) { codec::write(writer, launch.facts()); }
inline bool codec_read(codec::Reader& reader, Launch& launch) {
  sim::RecordedLaunch recorded;
  if (!codec::read(reader, recorded.facts)) return false;
  launch = recorded;
  return true;
}

MONARCH_FIELDS(PortSpan, first, last)
MONARCH_FIELDS(ControlSpec, via, address, ports)
MONARCH_FIELDS(NetworkSpec, interface, ports)
MONARCH_FIELDS(Dimension, name, size)
MONARCH_FIELDS(GangSpec, scope, along)
MONARCH_FIELDS(RestartPolicy, max, window, backoff, backoff_max, jitter)
MONARCH_FIELDS(ReallocatePolicy, max, window)
MONARCH_FIELDS(ShrinkPolicy, along, min, regrow)
MONARCH_FIELDS(PhaseLimit, longest, written)
MONARCH_FIELDS(HangPolicy, action, phases)
MONARCH_FIELDS(Supervision, heartbeat, suspect_after, lost_after, lease, hang, restart, reallocate, shrink,
               fatal_exit_codes, on_peer_lost, orphan, orphan_ttl)
MONARCH_FIELDS(StopPolicy, signal, to, grace, after_failure)
MONARCH_FIELDS(PortSpec, name, fixed)
MONARCH_FIELDS(ReadyPolicy, kind, port)
MONARCH_FIELDS(ResourcesSpec, gpus, visible, cpus, bind)
MONARCH_FIELDS(ClaimPolicy, trusts_job, env)
MONARCH_FIELDS(MeshSpec, name, dims, per_host_dims, gang, like, depends_on, wrap, program, env, env_pass, workdir,
               setup, sidecar, idle, claims, serves, ports, ready, resources, stop, supervision, standby_gangs)
MONARCH_FIELDS(Lifetime, idle, max)
MONARCH_FIELDS(LogLimits, max_bytes)
MONARCH_FIELDS(StorageSpec, path, shared)
MONARCH_FIELDS(CheckpointSpec, peer, memory)
MONARCH_FIELDS(WorkspaceSpec, path, exclude, include, max_bytes)
MONARCH_FIELDS(TensorSpec, shm, verbs, tcp, pin)
MONARCH_FIELDS(InputSpec, mesh, rank)
MONARCH_FIELDS(JobSpec, name, launch, control, network, supervisor_on, meshes, supervision, start_timeout, time_limit,
               lifetime, logs, storage, workspace, checkpoints, tensors, input, calls, drills, directory)

}  // namespace monarch
