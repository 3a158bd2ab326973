#pragma once

// How the messages of base/control_messages.h are written: as msgpack arrays of their fields, in this order. A new field goes last.
//
// Thread: values.

#include <monarch/codec.hpp>

#include "transport/base/control_messages.h"
#include "transport/wire/codec.h"
#include "transport/wire/vault_messages.h"

namespace monarch {

MONARCH_FIELDS(RankEnd, kind, value, detail, after_our_signal, out_of_memory, core_dumped);
MONARCH_FIELDS(RankProgress, step, phase, status, metrics, at);
MONARCH_FIELDS(TalkDrops, bad_values, too_long, foreign, connections, slow_readers);
MONARCH_FIELDS(CommitRequest, number, step, what, whole);
MONARCH_FIELDS(RankReport, process, phase, pid, held, started_at, ended_at, end, stdout_bytes, stderr_bytes,
               output_complete, ready, progress, talk_drops, error_bytes, evidence_at, standstill, commit, at_gate);
MONARCH_FIELDS(Hello, host, host_name, incarnation, boot_id, keeper_pid, daemon_pid, daemon_starts, version, promised);
MONARCH_FIELDS(HostPressure, cpu, memory, io);
MONARCH_FIELDS(BeatContent, ranks, output_dropped_bytes, output_lost_bytes, output_failure, pressure, vault, warnings);
MONARCH_FIELDS(Beat, seq, sent_at, loop_age, acked_seq, round_trip, content);
MONARCH_FIELDS(Ack, seq, lease, granted, forget, say_hello);
MONARCH_FIELDS(Reserve, mesh, gang, generation, count, fixed, gpus, first_port, last_port, spared);
MONARCH_FIELDS(Reserved, mesh, gang, generation, ports, error);
MONARCH_FIELDS(Goodbye, incarnation, orderly);
MONARCH_FIELDS(KeeperGone, incarnation);
MONARCH_FIELDS(RankBinding, kind, first_cpu, cpus, gpus);
MONARCH_FIELDS(RankStart, rank, env, program, workdir, ports, ready_port, binding, standby);
MONARCH_FIELDS(Start, mesh, mesh_name, gang, generation, program, env, defaults, workdir, ranks, orphan, orphan_ttl,
               stop_signal, stop_grace, signal_to, log_max_bytes, ready, setup, standby);
MONARCH_FIELDS(Stop, ranks, generation, signal, grace);
MONARCH_FIELDS(Signal, ranks, generation, number, to);
MONARCH_FIELDS(Tell, ranks, generation, json);
MONARCH_FIELDS(CommitAnswer, process, number, committed, why, gang);
MONARCH_FIELDS(Shutdown, reason);
MONARCH_FIELDS(Output, stream, offset, bytes);
MONARCH_FIELDS(OutputFrom, stream, offset);
MONARCH_FIELDS(OutputGone, stream, oldest);
MONARCH_FIELDS(KeeperHello, incarnation, keeper_pid, starts, has_stash, ranks, spawned, warnings);
MONARCH_FIELDS(KeeperPipes, mesh_name, log_max_bytes, ready_port, standby);
MONARCH_FIELDS(KeeperPing, number);
MONARCH_FIELDS(KeeperPong, number);
MONARCH_FIELDS(KeeperChanged, report);
MONARCH_FIELDS(KeeperEnded, left);
MONARCH_FIELDS(KeeperWarned, warnings);
MONARCH_FIELDS(KeeperStash, bytes);
MONARCH_FIELDS(KeeperLease, processes, until);
MONARCH_FIELDS(KeeperForget, processes);
MONARCH_FIELDS(KeeperSpawn, program, env, workdir, executable, memory_patience);
MONARCH_FIELDS(KeeperLetLive, process);
MONARCH_FIELDS(KeeperPipesTaken, process);
MONARCH_FIELDS(KeeperKeepOpen, count);
MONARCH_FIELDS(KeeperShutdown, exit_code);
MONARCH_FIELDS(KeeperReady, process);
MONARCH_FIELDS(Bootstrap, job_id, host, host_name, term, server_public_key, control_endpoint, bulk_endpoint,
               state_directory, log_directory, heartbeat, suspect_after, orphan_ttl, host_address, interface,
               socket_directory, copied, login_environment, checkpoint_memory, first_port, last_port, term_foretells);
MONARCH_FIELDS(Gpu, index, uuid);
MONARCH_FIELDS(HostInventory, cpus, gpus);
MONARCH_FIELDS(BootstrapReply, public_key, keeper_pid, boot_id, version, error, inventory, host_address, log_directory,
               architecture, refusal);
MONARCH_FIELDS(DaemonStash, job, bootstrap, public_key, secret_key, promised);

}  // namespace monarch
