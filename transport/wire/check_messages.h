#pragma once

// How the messages of base/check_messages.h are written, and how they follow each other in a stream: a line with the number of bytes,
// then the bytes. Who reads them bounds both.
//
// Thread: values.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <monarch/codec.hpp>

#include "transport/base/check_messages.h"
#include "transport/base/result.h"
#include "transport/wire/messages.h"

namespace monarch {

MONARCH_FIELDS(DoorWords, word, answer);
MONARCH_FIELDS(DoorCall, name, address, port);
MONARCH_FIELDS(DoorReached, call, error);
MONARCH_FIELDS(ProgramNeed, mesh, program, workdir, path);
MONARCH_FIELDS(FolderNeed, name, path, written);
MONARCH_FIELDS(TokenOrder, folder, name, content);
MONARCH_FIELDS(TokenFound, folder, content, error);
MONARCH_FIELDS(WorkerMarks, job_uuid, host);
MONARCH_FIELDS(WorkerThere, keepers, stopped, processes);
MONARCH_FIELDS(StrikeOrder, what, whom, job_uuid, host, mesh, rank, processes, address, ports, way, percent);
MONARCH_FIELDS(StrikeSeen, error, struck);
MONARCH_FIELDS(CheckRequest, words, life, patience, look, wake_gpus, first_door, last_door, calls, folders, programs,
               write, read, worker, strike, undo);
MONARCH_FIELDS(LimitFacts, soft, hard);
MONARCH_FIELDS(FolderFacts, name, path, error, there, no_exec, read_only, free_bytes, total_bytes, free_files);
MONARCH_FIELDS(ProgramFacts, mesh, program, found, error);
MONARCH_FIELDS(RdmaPortFacts, name, state, link_layer, rate);
MONARCH_FIELDS(InterfaceFacts, name, address, mtu);
MONARCH_FIELDS(OrphanFacts, job_uuid, host, pids, program);
MONARCH_FIELDS(HostFacts, version, kernel, machine, user, files, locked, processes, no_cgroup_because, ptrace_scope,
               places, inventory, gpu_driver, gpus_can_be_opened, rdma, interfaces, orphans, stale_sockets,
               kills_at_logout, address);
MONARCH_FIELDS(CheckAnswer, received, answered, error, facts, door, calls, folders, programs, written, read, worker,
               struck);

inline constexpr std::size_t kCheckBytes = 1U << 20U;  // of one message; more is an error

// With its length before it.
std::string encode_piece(std::string_view payload);

// Takes the first whole piece out of what has come; nothing yet, or kInvalid where no piece can begin so.
Result<std::optional<std::string>> take_piece(std::string& bytes);

}  // namespace monarch
