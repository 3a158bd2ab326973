#pragma once

/* The ABI between a plugin (a shared object with actors and controllers) and monarch-rank, the process that loads it. It
 * is C, and frozen: a field is only ever added at the end of a struct, and struct_size says who knows it. Who fills a
 * struct sets its struct_size; who reads one looks at no field that lies beyond it.
 *
 * Values travel as MessagePack: arguments as one array of them, results as one value. Texts are UTF-8 and end with a 0
 * byte. Pointers that are given are valid until the function that got them returns, unless it says otherwise. */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): read by C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

enum { MONARCH_ABI_V1 = 1 };

typedef struct monarch_bytes_v1 {
  const void* data;
  size_t size; /* bytes */
} monarch_bytes_v1;

typedef struct monarch_host_v1 monarch_host_v1;

/* A call that an endpoint has to answer; the host's. One reply() or fail() ends it, from any thread. */
typedef struct monarch_delivery_v1 monarch_delivery_v1;

/* How a rank's part of a call has ended. */
enum {
  MONARCH_VALUE = 0,
  MONARCH_REMOTE_ERROR = 1, /* the endpoint let an error out; the actor lives */
  MONARCH_RANK_LOST = 2,    /* it has ended, or is not up */
  MONARCH_DEADLINE = 3,
  MONARCH_BUSY = 4, /* too much waits there; it has not run */
  MONARCH_GONE = 5, /* nobody knows whether it has run */
  MONARCH_CANCELLED = 6,
  MONARCH_REFUSED = 7 /* nothing like it can be called, or a body is too large; has it run, the text says so */
};

typedef struct monarch_answer_v1 {
  uint32_t struct_size;
  uint32_t kind;       /* MONARCH_VALUE … */
  uint32_t rank;       /* within the mesh */
  uint32_t reserved;   /* 0 */
  uint64_t generation; /* of the rank that says so; 0: it is none that does */
  monarch_bytes_v1 value;
  const char* type; /* of what a MONARCH_REMOTE_ERROR let out; else empty */
  const char* text;
  const char* traceback; /* may be empty */
} monarch_answer_v1;

/* Ranks first, first + step, …: count of them. */
typedef struct monarch_ranks_v1 {
  uint32_t first;
  uint32_t count;
  uint32_t step;
} monarch_ranks_v1;

enum {
  MONARCH_CALL_QUIET = 1, /* of values nothing is told */
  MONARCH_CALL_TRY = 2,   /* where it would wait, it is MONARCH_BUSY */
  /* on_answer may be called on any thread that is in wait() of monarch_reading_v1, whatever that waits for: it runs no
   * code that somebody else has written. A host without that table does not know it. */
  MONARCH_CALL_ANY_THREAD = 4
};

typedef struct monarch_call_v1 {
  uint32_t struct_size;
  uint32_t flags; /* MONARCH_CALL_QUIET | MONARCH_CALL_TRY */
  const char* mesh;
  const char* actor;
  const char* endpoint;
  const char* signature; /* "*": whatever it takes */
  const monarch_ranks_v1* ranks;
  size_t ranks_count; /* of these structs */
  monarch_bytes_v1 arguments;
  int64_t deadline_ns; /* from now; 0, or more than a hundred years: none */
  /* On a thread of the host's, for each rank once; NULL: that was the last. It must not wait. */
  void (*on_answer)(void* user, const monarch_answer_v1* answer);
  void* user;
  /* Where there are some, they are the arguments, one after the other, and `arguments` is nothing. A host whose
   * monarch_host_v1 has reply_with() knows them. */
  const monarch_bytes_v1* pieces;
  size_t piece_count;
} monarch_call_v1;

enum {
  MONARCH_REPLY_HAS_READ = 1 /* who replies reads the arguments no more, but for what it holds of them */
};

/* A result, piece by piece. */
typedef struct monarch_reply_v1 {
  uint32_t struct_size;
  uint32_t flags;                 /* MONARCH_REPLY_HAS_READ */
  const monarch_bytes_v1* pieces; /* one after the other */
  size_t piece_count;
} monarch_reply_v1;

/* Where an actor or a controller is. */
typedef struct monarch_place_v1 {
  uint32_t struct_size;
  uint32_t rank;
  uint64_t generation; /* from 1; each start of the rank is a later one */
  const char* mesh;
  const char* actor;         /* its name; of a controller: empty */
  const char* host;          /* its name */
  const char* why_restarted; /* may be empty */
  uint32_t dim_count;
  uint32_t reserved; /* 0 */
  const char* const* dim_names;
  const uint32_t* dim_sizes;
  monarch_bytes_v1 args; /* what the spec gives it: a MessagePack map */
} monarch_place_v1;

/* extension("monarch.waiting.v1"): a thread of an actor waits for a call as long as it takes, or has waited. */
typedef struct monarch_waiting_v1 {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  /* Once it has waited for a moment, and again each second; end() follows in any case. Not 0: the actor would wait for
   * itself, or the thread that brings answers for one, and `why` says how, in at most why_size bytes with the 0 behind
   * them. Call 0 is none, and asks for the thread alone. */
  int (*begin)(const monarch_host_v1* host, uint64_t call, char* why, size_t why_size);
  void (*end)(const monarch_host_v1* host, uint64_t call);
} monarch_waiting_v1;

#define MONARCH_WAITING_V1 "monarch.waiting.v1"

/* extension("monarch.reading.v1"): a thread that waits for answers reads them itself, where no other does, and nobody
 * has to wake it. What waits in another way, and calls without MONARCH_CALL_ANY_THREAD, are served by a thread of the
 * host's. */
typedef struct monarch_reading_v1 {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  /* Until done(user) is not 0, or for within_ns. It is asked at first, after each answer that this thread has given,
   * and after wake() of `key`; it must not wait. 0: it has not waited, for here answers are given on that thread. */
  int (*wait)(const monarch_host_v1* host, const void* key, int (*done)(void* user), void* user, int64_t within_ns);
  /* What done() of those with that key says may be another thing now. */
  void (*wake)(const monarch_host_v1* host, const void* key);
  /* The answers of that call are wanted at once, also where nobody is in wait(). */
  void (*attend)(const monarch_host_v1* host, uint64_t call);
  /* Runs run(user) on the host's own thread, which must not wait: at once if this is that. */
  void (*run)(const monarch_host_v1* host, void (*run)(void* user), void* user);
} monarch_reading_v1;

#define MONARCH_READING_V1 "monarch.reading.v1"

/* Memory of the host's, as long as it is not dropped. */
typedef struct monarch_memory_v1 monarch_memory_v1;

/* extension("monarch.buffers.v1"): bytes that are read where they lie, or made where others read them. */
typedef struct monarch_buffers_v1 {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  /* The arguments of a delivery that is not answered, or the value of an answer within on_answer, stay where they are
   * until it is dropped. NULL: they do not, and are to be copied. */
  monarch_memory_v1* (*hold_arguments)(const monarch_host_v1* host, monarch_delivery_v1* delivery);
  monarch_memory_v1* (*hold_value)(const monarch_host_v1* host, const monarch_answer_v1* answer);
  /* So many bytes from `*data` on, which lies at a page, of any value. They are written until they are part of a piece
   * that is given to the host, and never after that. NULL: no such memory is to be had just now. */
  monarch_memory_v1* (*make)(const monarch_host_v1* host, size_t size, void** data);
  void (*drop)(monarch_memory_v1* memory); /* on any thread, also when all else has ended */
} monarch_buffers_v1;

#define MONARCH_BUFFERS_V1 "monarch.buffers.v1"

struct monarch_host_v1 {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  /* Each ends the delivery. What is given is copied. */
  void (*reply)(monarch_delivery_v1* delivery, monarch_bytes_v1 result);
  void (*fail)(monarch_delivery_v1* delivery, const char* type, const char* text, const char* traceback);
  /* Is nobody waiting for it any more? */
  int (*is_cancelled)(const monarch_delivery_v1* delivery);
  /* It waits while the caller has too much under way. The number is for cancel(); the call's answers come in any case. */
  uint64_t (*call)(const monarch_host_v1* host, const monarch_call_v1* call);
  void (*cancel)(const monarch_host_v1* host, uint64_t call);
  /* The dims of another mesh, valid as long as the process; 0: there is none of that name. */
  int (*mesh)(const monarch_host_v1* host, const char* name, monarch_place_v1* place);
  /* on_failure: on a thread of the host's, for each failure that supervision sees from now on; it must not wait. */
  void (*watch)(const monarch_host_v1* host,
                void (*on_failure)(void* user, const char* mesh, const monarch_answer_v1* lost), void* user);
  /* Tables of functions that came later, by name; NULL: this host has none of it. */
  const void* (*extension)(const monarch_host_v1* host, const char* name);
  void* runtime; /* the host's own */
  /* As reply(). */
  void (*reply_with)(monarch_delivery_v1* delivery, const monarch_reply_v1* result);
};

typedef struct monarch_endpoint_v1 {
  uint32_t struct_size;
  uint32_t at_most; /* so many at once, which overlap with all others of the actor; 0: one at a time */
  const char* name;
  const char* signature; /* "*": it takes whatever comes */
  /* It ends the delivery, or sees to it that it is ended later. */
  void (*invoke)(void* actor, monarch_bytes_v1 arguments, const monarch_host_v1* host, monarch_delivery_v1* delivery);
} monarch_endpoint_v1;

typedef struct monarch_class_v1 {
  uint32_t struct_size;
  uint32_t endpoint_count;
  const char* name;
  const monarch_endpoint_v1* endpoints;
  /* NULL: there is no actor, and `why` says why, in at most why_size bytes with the 0 behind them. */
  void* (*create)(const monarch_host_v1* host, const monarch_place_v1* place, char* why, size_t why_size);
  void (*destroy)(void* actor);
} monarch_class_v1;

typedef struct monarch_controller_v1 {
  uint32_t struct_size;
  uint32_t reserved; /* 0 */
  const char* name;
  int (*run)(const monarch_host_v1* host, const monarch_place_v1* place); /* the exit code */
} monarch_controller_v1;

typedef struct monarch_plugin_v1 {
  uint32_t struct_size;
  uint32_t abi; /* MONARCH_ABI_V1 */
  size_t class_count;
  const monarch_class_v1* const* classes;
  size_t controller_count;
  const monarch_controller_v1* const* controllers;
} monarch_plugin_v1;

/* The one function of a plugin: monarch_plugin_v1_get. */
typedef const monarch_plugin_v1* (*monarch_plugin_v1_getter)(void);

#ifdef __cplusplus
}
#endif
