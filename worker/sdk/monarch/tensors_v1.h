#pragma once

/* Tensors between ranks, in C: a gang publishes versions of named tensors, each rank its parts of them; other ranks
 * pull them, each in its own layout (monarch-tensors(7)). What exports this is libmonarch-rank.so; MONARCH_RANK_LIBRARY
 * names the file in ranks of a job with `tensors`.
 *
 * Frozen as monarch/plugin_v1.h is: fields are only ever added at the end of a struct, and who fills one sets its
 * struct_size, the same in each of an array; fields that it does not have are 0. Every function returns one of
 * MONARCH_TENSORS_OK …; where that is another, and `error` is not NULL, it says why. Every wait has a deadline, or names
 * every 30 s what it is for. Texts are UTF-8 and end with a 0 byte.
 *
 * A session is any thread's; a publisher, and a pull but for its cancel, one's at a time. What a session has given out
 * is closed before it. After fork() a child opens its own. */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): read by C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

enum { MONARCH_TENSORS_ABI_V1 = 1 };

enum {
  MONARCH_TENSORS_OK = 0,
  MONARCH_TENSORS_INVALID = 1,     /* what is asked for is wrong, or does not fit what others publish */
  MONARCH_TENSORS_NOT_COVERED = 2, /* nobody has some of it */
  MONARCH_TENSORS_PEER_GONE = 3,   /* the generation of the gang that publishes it is over */
  MONARCH_TENSORS_ENDED = 4,       /* it is published no more, and there is nothing newer */
  MONARCH_TENSORS_TIMEOUT = 5,
  MONARCH_TENSORS_CANCELLED = 6,
  MONARCH_TENSORS_UNREACHABLE = 7, /* a rank that lives is not reached */
  MONARCH_TENSORS_NO_ROOM = 8,     /* no memory, or another limit */
  MONARCH_TENSORS_UNSUPPORTED = 9,
  MONARCH_TENSORS_INTERNAL = 10,
  MONARCH_TENSORS_DEVICE = 11 /* a GPU, or its driver, has failed at it */
};

enum { MONARCH_TENSORS_TEXT = 1024, MONARCH_TENSORS_LANE = 8, MONARCH_TENSORS_DIMS = 8 };

typedef struct monarch_tensors_error_v1 {
  uint32_t struct_size;
  int32_t code;
  int64_t rank;                    /* within the mesh; -1: it is of none */
  uint64_t generation;             /* of the gang that was pulled from; 0: none was found */
  char lane[MONARCH_TENSORS_LANE]; /* "shm", "verbs", "tcp"; empty: of none */
  char text[MONARCH_TENSORS_TEXT];
} monarch_tensors_error_v1;

/* A box of a tensor, and memory for it. Elements are as DLPack counts them (DLDataType). */
typedef struct monarch_tensors_part_v1 {
  uint32_t struct_size;
  uint32_t dims; /* 0 … MONARCH_TENSORS_DIMS */
  const char* name;
  void* data;
  uint8_t dtype_code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 7 … 14 float8 (e3m4, e4m3, e4m3b11fnuz,
                         e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, e8m0fnu), 17 float4_e2m1fn */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;   /* 1; of float4 2, as its elements lie in whole bytes */
  uint32_t reserved;      /* 0 */
  const uint64_t* size;   /* of the box, indices in each dimension, the slowest first */
  const int64_t* strides; /* of the memory, in bytes; NULL: dense, row-major */
  const uint64_t* of;     /* shape of the tensor; NULL: the box is all of it */
  const uint64_t* at;     /* where the box begins; NULL: at 0 in each dimension */
  int32_t device_type;    /* of the memory, as DLPack counts them: 0 and 1 the host's, 2 CUDA's, 13 CUDA's managed */
  int32_t device;         /* the GPU, as this process counts them; -1: the driver says which */
  uint64_t stream;        /* of that GPU (CUstream; 0: its default one), on which a put is copied: behind what is
                             enqueued there, and before what comes after. A pull has that of its run */
} monarch_tensors_part_v1;

/* Versions of one gang rise within a generation; one that is started again may begin at an earlier one. */
typedef struct monarch_tensors_version_v1 {
  uint32_t struct_size;
  uint32_t gang; /* of the mesh */
  uint64_t generation;
  uint64_t number;
} monarch_tensors_version_v1;

typedef struct monarch_tensors_session monarch_tensors_session;
typedef struct monarch_tensors_publisher monarch_tensors_publisher;
typedef struct monarch_tensors_pull monarch_tensors_pull;

/* MONARCH_TENSORS_ABI_V1 of the library. */
uint32_t monarch_tensors_abi(void);

int monarch_tensors_session_open(monarch_tensors_session** session, monarch_tensors_error_v1* error);
void monarch_tensors_session_close(monarch_tensors_session* session);

typedef struct monarch_tensors_publish_v1 {
  uint32_t struct_size;
  uint32_t publisher_count; /* 0: all ranks of the gang */
  const char* name;
  const uint32_t* publishers; /* indices within the gang; the first rank is one of them */
  int64_t patience_ms;        /* that slow readers are waited for before a slot is written again; < 0: 2 s */
  int64_t linger_ms;          /* that the last version is offered for at the end; < 0: 30 s */
} monarch_tensors_publish_v1;

int monarch_tensors_publisher_open(monarch_tensors_session* session, const monarch_tensors_publish_v1* options,
                                   monarch_tensors_publisher** publisher, monarch_tensors_error_v1* error);
/* Waits until the older of two slots may be written, for `patience` at most. */
int monarch_tensors_version_begin(monarch_tensors_publisher* publisher, uint64_t number,
                                  monarch_tensors_error_v1* error);
/* Copies; each box once in a version, and all versions have the same boxes. */
int monarch_tensors_version_put(monarch_tensors_publisher* publisher, const monarch_tensors_part_v1* part,
                                monarch_tensors_error_v1* error);
/* The same, as elements of another dtype: float32 is rounded to bfloat16 on the way, to the nearest, ties to even. */
int monarch_tensors_version_put_as(monarch_tensors_publisher* publisher, const monarch_tensors_part_v1* part,
                                   uint8_t dtype_code, uint8_t dtype_bits, monarch_tensors_error_v1* error);
/* The same without a copy: *memory is for the box's bytes, dense and row-major, until the version is committed or
 * abandoned. `part`'s data and strides are not looked at. */
int monarch_tensors_version_lend(monarch_tensors_publisher* publisher, const monarch_tensors_part_v1* part,
                                 void** memory, monarch_tensors_error_v1* error);
int monarch_tensors_version_commit(monarch_tensors_publisher* publisher, monarch_tensors_error_v1* error);
/* The same: it waits for the streams that the version is copied on, and no longer than that; < 0: without end. */
int monarch_tensors_version_commit_within(monarch_tensors_publisher* publisher, int64_t timeout_ms,
                                          monarch_tensors_error_v1* error);
void monarch_tensors_version_abandon(monarch_tensors_publisher* publisher);
/* Offers the last version until its readers have it or have gone, and where nobody has read any until somebody has, for
 * `linger` at most. The handle is still to be freed. */
int monarch_tensors_publisher_end(monarch_tensors_publisher* publisher, monarch_tensors_error_v1* error);
/* It is published no more. */
void monarch_tensors_publisher_free(monarch_tensors_publisher* publisher);

/* Of a publication of a mesh these boxes, into that memory, which stays where it is until the pull is freed. */
int monarch_tensors_pull_make(monarch_tensors_session* session, const char* mesh, const char* publication,
                              const monarch_tensors_part_v1* parts, size_t count, monarch_tensors_pull** pull,
                              monarch_tensors_error_v1* error);

enum { MONARCH_TENSORS_NEXT_GENERATION = 1 /* a gang that ends is no error: its next generation is waited for */ };

typedef struct monarch_tensors_run_v1 {
  uint32_t struct_size;
  uint32_t flags;
  int64_t timeout_ms;                           /* < 0: none */
  const monarch_tensors_version_v1* newer_than; /* NULL: any */
  uint64_t stream; /* on which memory of GPUs is filled (CUstream; 0: the default one of each): behind what is enqueued
                      there. All is there when the run returns */
} monarch_tensors_run_v1;

typedef struct monarch_tensors_pulled_v1 {
  uint32_t struct_size;
  uint32_t gang;
  uint64_t generation;
  uint64_t number;
  uint64_t bytes;
  double seconds;
  uint32_t by_shm; /* ranks that it came from */
  uint32_t by_tcp;
  uint32_t by_verbs;
  uint32_t reserved;
} monarch_tensors_pulled_v1;

/* One whole version, or an error; then what is in the memory is undefined. When it returns, nothing writes into the
 * memory any more. A pull that has failed may be run again. */
int monarch_tensors_pull_run(monarch_tensors_pull* pull, const monarch_tensors_run_v1* options,
                             monarch_tensors_pulled_v1* pulled, monarch_tensors_error_v1* error);
/* From any thread: the run that is under way ends with MONARCH_TENSORS_CANCELLED, else the next one. */
void monarch_tensors_pull_cancel(monarch_tensors_pull* pull);
/* All of one tensor, as a rank of this machine has it in its memory, and not copied: the pull that is made here fetches
 * nothing, and what it was run for stays as it is, read-only, until its next run or its end. While it is held the
 * publisher has other memory; of more than two at a time it is refused a version. */
int monarch_tensors_map_make(monarch_tensors_session* session, const char* mesh, const char* publication,
                             const char* tensor, monarch_tensors_pull** pull, monarch_tensors_error_v1* error);

typedef struct monarch_tensors_mapped_v1 {
  uint32_t struct_size;
  uint32_t dims;
  const void* data; /* dense, row-major */
  uint64_t bytes;
  uint8_t dtype_code;
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  uint32_t reserved;
  uint64_t size[MONARCH_TENSORS_DIMS];
} monarch_tensors_mapped_v1;

/* After a run of such a pull that was MONARCH_TENSORS_OK. */
int monarch_tensors_pull_mapped(monarch_tensors_pull* pull, monarch_tensors_mapped_v1* mapped,
                                monarch_tensors_error_v1* error);
/* What is published, once something is: JSON, {"tensors": [{"name", "dtype", "shape"}]}. It is the pull's, and valid
 * until its next run. NULL: nothing was pulled yet. */
const char* monarch_tensors_pull_describe(monarch_tensors_pull* pull);
void monarch_tensors_pull_free(monarch_tensors_pull* pull);

/* ---- Groups: ranks of several meshes that meet under a name, and hear when one of them is lost. The first of their
 * list holds the group, and a port for a store; all have to call for the same list. An epoch ends when a member ends,
 * leaves or calls again: then it is lost to all others, and the next call of all is the next epoch. */

typedef struct monarch_tensors_group monarch_tensors_group;

/* Ranks of a mesh; the rank in the group is the place in the list. */
typedef struct monarch_tensors_members_v1 {
  uint32_t struct_size;
  uint32_t count; /* 0: all ranks of the mesh */
  const char* mesh;
  const uint32_t* ranks;
} monarch_tensors_members_v1;

typedef struct monarch_tensors_meet_v1 {
  uint32_t struct_size;
  uint32_t members_count;
  const char* name; /* 1 to 128 bytes */
  const monarch_tensors_members_v1* members;
  int64_t timeout_ms;   /* < 0: none */
  int64_t notice_ms;    /* between two lines that name who is missing; < 0: 30 s */
  const void* offer;    /* bytes that the first member gives all of the epoch; those of others are not looked at */
  uint64_t offer_bytes; /* MONARCH_TENSORS_OFFER at most */
} monarch_tensors_meet_v1;

enum { MONARCH_TENSORS_OFFER = 1024 };

/* Returns once all members have called, from any thread of theirs, with the same list. INVALID: the list is none, lacks
 * this rank, or is another one than those of others, which is said to all of them; TIMEOUT: the text says who has not
 * called; PEER_GONE: the first member has ended and does not come back. Who calls has left the epoch that it was in. */
int monarch_tensors_group_meet(monarch_tensors_session* session, const monarch_tensors_meet_v1* options,
                               monarch_tensors_group** group, monarch_tensors_error_v1* error);

typedef struct monarch_tensors_group_v1 {
  uint32_t struct_size;
  uint32_t rank; /* of this member */
  uint32_t size;
  uint32_t port;       /* that the first member's process holds, bound and not listened at, within network.ports */
  uint64_t generation; /* of the first member; with `epoch` it is greater than that of any epoch before */
  uint64_t epoch;      /* counted in that generation */
  const char*
      address; /* of the first member's host, numeric, for others; this and `offer` are valid as the handle is */
  const void* offer;
  uint64_t offer_bytes;
} monarch_tensors_group_v1;

void monarch_tensors_group_info(monarch_tensors_group* group, monarch_tensors_group_v1* info);

typedef struct monarch_tensors_member_v1 {
  uint32_t struct_size;
  uint32_t rank; /* within its mesh */
  uint64_t generation;
  const char* mesh; /* valid until the next call for a member of this group */
} monarch_tensors_member_v1;

/* INVALID: there is no such one. One thread's at a time. */
int monarch_tensors_group_member(monarch_tensors_group* group, uint32_t index, monarch_tensors_member_v1* member,
                                 monarch_tensors_error_v1* error);

/* OK while the epoch is not lost, else PEER_GONE with why: "generator/2 is lost: …". It waits for nothing. */
int monarch_tensors_group_check(monarch_tensors_group* group, monarch_tensors_error_v1* error);
/* PEER_GONE as soon as it is lost; TIMEOUT: it is not, within that time (< 0: no limit); CANCELLED: it was left. */
int monarch_tensors_group_wait_lost(monarch_tensors_group* group, int64_t timeout_ms, monarch_tensors_error_v1* error);
/* The epoch is lost to all others. Whoever waits for its loss returns; the handle is still to be freed. */
void monarch_tensors_group_leave(monarch_tensors_group* group);
/* Leaves it. No other call of it is under way. */
void monarch_tensors_group_free(monarch_tensors_group* group);

/* ---- NCCL: a communicator of the members of a group that has met, for memory of GPUs. It ends with the epoch of the
 * group, and no call of it waits for ever for a member that is gone. libnccl.so.2, 2.14 or later, is the one that the
 * process has loaded already, else the file that MONARCH_NCCL_LIBRARY names, else it is found by its name.
 *
 * UNSUPPORTED: there is no NCCL or no driver of NVIDIA's, in the loader's words, or NCCL is too old; nothing was asked of
 * it. PEER_GONE: a member is lost; DEVICE, INVALID, INTERNAL: NCCL's own words, as for two members on one GPU; TIMEOUT:
 * it was not done by then. After any of these but UNSUPPORTED, INVALID of what is wrong with the call itself, and
 * TIMEOUT of a wait, the communicator has been aborted, all other members are told, and every call says PEER_GONE with
 * the first cause. Any thread's; work is asked for by one at a time. It is freed before its group. */

typedef struct monarch_tensors_nccl monarch_tensors_nccl;

enum { MONARCH_TENSORS_NCCL_ID = 128 };

/* By the first member of a group, before it meets: its offer is this id. A thread of NCCL's serves it from then on. */
int monarch_tensors_nccl_id(void* id, monarch_tensors_error_v1* error);
/* On that GPU, as this process counts them, and a member each. Returns once all members have opened theirs; a timeout
 * below 0: none. INVALID: its group has met without an id. */
int monarch_tensors_nccl_open(monarch_tensors_group* group, int32_t device, int64_t timeout_ms,
                              monarch_tensors_nccl** nccl, monarch_tensors_error_v1* error);

enum {
  MONARCH_TENSORS_NCCL_ALL_REDUCE = 0,
  MONARCH_TENSORS_NCCL_BROADCAST = 1,
  MONARCH_TENSORS_NCCL_ALL_GATHER = 2,
  MONARCH_TENSORS_NCCL_REDUCE_SCATTER = 3,
  MONARCH_TENSORS_NCCL_SEND = 4,
  MONARCH_TENSORS_NCCL_RECV = 5
};

enum {
  MONARCH_TENSORS_NCCL_SUM = 0,
  MONARCH_TENSORS_NCCL_PRODUCT = 1,
  MONARCH_TENSORS_NCCL_MAX = 2,
  MONARCH_TENSORS_NCCL_MIN = 3,
  MONARCH_TENSORS_NCCL_AVERAGE = 4
};

typedef struct monarch_tensors_nccl_work_v1 {
  uint32_t struct_size;
  uint32_t call;    /* MONARCH_TENSORS_NCCL_ALL_REDUCE ... */
  const void* from; /* what this member gives; of a broadcast its root alone. NULL: nothing */
  void* to;       /* what it gets; it may be `from`, and of a broadcast, all_gather or reduce_scatter its place there */
  uint64_t count; /* elements; of ALL_GATHER that each gives, of REDUCE_SCATTER that each gets */
  uint8_t dtype_code; /* as in monarch_tensors_part_v1. What is not reduced is moved as bytes, of any dtype */
  uint8_t dtype_bits;
  uint16_t dtype_lanes;
  uint32_t op;        /* MONARCH_TENSORS_NCCL_SUM ... */
  uint32_t peer;      /* a member: the root of a broadcast, whom it is sent to, or received from */
  uint32_t reserved;  /* 0 */
  uint64_t stream;    /* of that GPU (CUstream), on which it is done */
  int64_t timeout_ms; /* until it is enqueued; < 0: none */
} monarch_tensors_nccl_work_v1;

/* Returns when it is enqueued on the stream: what is enqueued there after it is behind it. Its memory has to stay until
 * a wait for the stream is OK, or the communicator is freed. Of two that each send to the other both wait for ever, as
 * in NCCL without a group of calls: one of them receives first. */
int monarch_tensors_nccl_run(monarch_tensors_nccl* nccl, const monarch_tensors_nccl_work_v1* work,
                             monarch_tensors_error_v1* error);
/* Until what is enqueued on the stream has ended. TIMEOUT: it goes on, and may be waited for again. */
int monarch_tensors_nccl_wait(monarch_tensors_nccl* nccl, uint64_t stream, int64_t timeout_ms,
                              monarch_tensors_error_v1* error);
/* The end in order, by all members: returns once what they still have to get of each other is sent, and all have called
 * it. Where one has not by then it ends all the same, and the others are told. The handle is still to be freed. */
int monarch_tensors_nccl_close(monarch_tensors_nccl* nccl, int64_t timeout_ms, monarch_tensors_error_v1* error);
/* Where it was not closed it is aborted, and this member has left the group. It waits for what runs on the GPU to end,
 * for 10 s at most. No other call of it is under way. */
void monarch_tensors_nccl_free(monarch_tensors_nccl* nccl);

#ifdef __cplusplus
}
#endif
