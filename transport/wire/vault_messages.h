#pragma once

// How the messages of base/vault_messages.h are written: as msgpack arrays of their fields, in this order. A new field goes last.
//
// Thread: values.

#include <monarch/codec.hpp>

#include "transport/base/vault_messages.h"
#include "transport/wire/codec.h"

namespace monarch {

MONARCH_FIELDS(VaultKey, rank, generation, step);
MONARCH_FIELDS(VaultMesh, name, gang_size);
MONARCH_FIELDS(VaultSource, host, first, count);
MONARCH_FIELDS(VaultGang, mesh, gang, generation, committed, resumed, targets, passed, sources);
MONARCH_FIELDS(VaultPeer, host, name, address, port, public_key);
MONARCH_FIELDS(VaultTable, version, meshes, gangs, peers);
MONARCH_FIELDS(VaultReport, port, table, used);
MONARCH_FIELDS(VaultSetup, job, host_name, host, address, public_key, secret_key, memory, directory, keeper_pid,
               first_port, last_port);
MONARCH_FIELDS(VaultOffer, key, bytes, digest);
MONARCH_FIELDS(VaultKept, key, digest, refused, full);
MONARCH_FIELDS(VaultAsk, key, digest, offset, length);
MONARCH_FIELDS(VaultPiece, key, digest, offset, length, total, refused);

}  // namespace monarch
