/* A plugin that was built before Buffers, pieces and waiting threads that read: it has the interface as it was then, with
 * structs that are shorter than today's, and no header of ours. Its actor gives back what it gets; its controller sends
 * small and large bytes to that and to an actor of today, one after the other and all at once, and looks at each byte. */

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
  const void* data;
  size_t size;
};
struct answer {
  uint32_t struct_size, kind, rank, reserved;
  uint64_t generation;
  struct bytes value;
  const char *type, *text, *traceback;
};
struct ranks {
  uint32_t first, count, step;
};
struct call {
  uint32_t struct_size, flags;
  const char *mesh, *actor, *endpoint, *signature;
  const struct ranks* ranks;
  size_t ranks_count;
  struct bytes arguments;
  int64_t deadline_ns;
  void (*on_answer)(void* user, const struct answer* answer);
  void* user;
};
struct delivery;
struct place;
struct host {
  uint32_t struct_size, reserved;
  void (*reply)(struct delivery* delivery, struct bytes result);
  void (*fail)(struct delivery* delivery, const char* type, const char* text, const char* traceback);
  int (*is_cancelled)(const struct delivery* delivery);
  uint64_t (*call)(const struct host* host, const struct call* call);
  void (*cancel)(const struct host* host, uint64_t call);
  int (*mesh)(const struct host* host, const char* name, struct place* place);
  void (*watch)(const struct host* host, void (*on_failure)(void*, const char*, const struct answer*), void* user);
  const void* (*extension)(const struct host* host, const char* name);
  void* runtime;
};
struct endpoint {
  uint32_t struct_size, at_most;
  const char *name, *signature;
  void (*invoke)(void* actor, struct bytes arguments, const struct host* host, struct delivery* delivery);
};
struct actor_class {
  uint32_t struct_size, endpoint_count;
  const char* name;
  const struct endpoint* endpoints;
  void* (*create)(const struct host* host, const struct place* place, char* why, size_t why_size);
  void (*destroy)(void* actor);
};
struct controller {
  uint32_t struct_size, reserved;
  const char* name;
  int (*run)(const struct host* host, const struct place* place);
};
struct plugin {
  uint32_t struct_size, abi;
  size_t class_count;
  const struct actor_class* const* classes;
  size_t controller_count;
  const struct controller* const* controllers;
};
_Static_assert(sizeof(struct call) == 96 && sizeof(struct host) == 80, "as they were");

/* Bytes as MessagePack has them: a byte for their kind, their size in 1, 2 or 4 bytes, and they themselves. */
enum { kBin8 = 0xc4, kBin16 = 0xc5, kBin32 = 0xc6, kListOfOne = 0x91, kHeader = 6 };

static struct bytes binary_of(struct bytes packed) {
  const unsigned char* const at = packed.data;
  const unsigned wide = packed.size == 0 || at[0] < kBin8 || at[0] > kBin32 ? 0 : 1U << (at[0] - kBin8);
  size_t size = 0;
  if (wide == 0 || packed.size < 1 + wide) return (struct bytes){NULL, 0};
  for (unsigned i = 0; i < wide; ++i) size = size << 8U | at[1 + i];
  return (struct bytes){at + 1 + wide, size == packed.size - 1 - wide ? size : 0};
}

static int made = 0;
static void* create(const struct host* host, const struct place* place, char* why, size_t why_size) {
  (void)host, (void)place, (void)why, (void)why_size;
  return &made;
}
static void destroy(void* actor) { (void)actor; }

static void echo(void* actor, struct bytes arguments, const struct host* host, struct delivery* delivery) {
  (void)actor;
  const unsigned char* const list = arguments.data;
  if (arguments.size < 2 || list[0] != kListOfOne) {
    host->fail(delivery, "Before", "no list of one", "");
  } else {
    host->reply(delivery, (struct bytes){list + 1, arguments.size - 1});
  }
}

/* One call under way, to one rank. */
struct sent {
  pthread_mutex_t* mutex;
  pthread_cond_t* changed;
  unsigned char* packed; /* a list of one: `size` bytes */
  size_t size;
  int answers, right, over;
  char why[200];
};

static void on_answer(void* user, const struct answer* answer) {
  struct sent* const sent = user;
  pthread_mutex_lock(sent->mutex);
  if (answer != NULL) {
    const struct bytes came = answer->kind == 0 ? binary_of(answer->value) : (struct bytes){NULL, 0};
    ++sent->answers;
    sent->right = answer->kind == 0 && came.data != NULL && came.size == sent->size &&
                  memcmp(came.data, sent->packed + kHeader, sent->size) == 0;
    (void)snprintf(sent->why, sizeof sent->why, "kind %" PRIu32 ", %zu bytes of %zu: %s", answer->kind, came.size,
                   sent->size, answer->text);
  } else {
    sent->over = 1;
    pthread_cond_broadcast(sent->changed);
  }
  pthread_mutex_unlock(sent->mutex);
}

static void begin(const struct host* host, struct sent* sent, const char* actor, const char* endpoint, size_t size,
                  uint32_t rank) {
  sent->size = size;
  sent->packed = malloc(kHeader + size);
  sent->packed[0] = kListOfOne;
  sent->packed[1] = kBin32;
  for (unsigned i = 0; i < 4; ++i) sent->packed[2 + i] = (unsigned char)(size >> (24U - 8U * i));
  for (size_t i = 0; i < size; ++i) sent->packed[kHeader + i] = (unsigned char)(i * 31U + i / 251U + size + rank);
  const struct ranks ranks = {rank, 1, 1};
  /* Where today's struct has pieces, there is something else. */
  struct {
    struct call call;
    unsigned char behind[64];
  } asked = {.call = {.struct_size = sizeof asked.call,
                      .mesh = "t",
                      .actor = actor,
                      .endpoint = endpoint,
                      .signature = "y->y",
                      .ranks = &ranks,
                      .ranks_count = 1,
                      .arguments = {sent->packed, kHeader + size},
                      .on_answer = &on_answer,
                      .user = sent}};
  memset(asked.behind, 0xff, sizeof asked.behind);
  (void)host->call(host, &asked.call);
}

static int finish(struct sent* sent, const char* what) {
  pthread_mutex_lock(sent->mutex);
  while (!sent->over) pthread_cond_wait(sent->changed, sent->mutex);
  pthread_mutex_unlock(sent->mutex);
  const int right = sent->answers == 1 && sent->right;
  if (!right) printf("not ok %s: %d answers, %s\n", what, sent->answers, sent->why);
  free(sent->packed);
  return right;
}

static const size_t kSizes[] = {0, 1, 100, 16383, 16384, 49152, 65536, 1U << 20U, (8U << 20U) + 1};
enum { kCountOfSizes = sizeof kSizes / sizeof kSizes[0], kRanks = 2, kAtOnce = kRanks * kCountOfSizes * 2 };

static int run(const struct host* host, const struct place* place) {
  static const char* const kActors[] = {"before", "today"};
  (void)place;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  int right = 1;
  for (int a = 0; a < 2; ++a) {
    char what[64];
    (void)snprintf(what, sizeof what, "%s, one after the other", kActors[a]);
    for (unsigned i = 0; i < kRanks * kCountOfSizes; ++i) {
      struct sent one = {.mutex = &mutex, .changed = &changed};
      begin(host, &one, kActors[a], "echo", kSizes[i / kRanks], i % kRanks);
      right = finish(&one, what) && right;
    }
    if (right) printf("ok %s\n", what);
    (void)snprintf(what, sizeof what, "%s, all at once", kActors[a]);
    struct sent all[kAtOnce];
    memset(all, 0, sizeof all);
    for (unsigned i = 0; i < kAtOnce; ++i) {
      all[i].mutex = &mutex;
      all[i].changed = &changed;
      begin(host, &all[i], kActors[a], i % 4 < 2 ? "echo" : "echo_beside", kSizes[i / 4], i % kRanks);
    }
    for (unsigned i = 0; i < kAtOnce; ++i) right = finish(&all[i], what) && right;
    if (right) printf("ok %s\n", what);
  }
  return right ? 0 : 1;
}

static const struct endpoint kEndpoints[] = {{sizeof(struct endpoint), 0, "echo", "y->y", &echo},
                                             {sizeof(struct endpoint), 8, "echo_beside", "y->y", &echo}};
static const struct actor_class kStore = {sizeof kStore, 2, "Store", kEndpoints, &create, &destroy};
static const struct controller kBefore = {sizeof kBefore, 0, "before", &run};

const struct plugin* monarch_plugin_v1_get(void);
const struct plugin* monarch_plugin_v1_get(void) {
  static const struct actor_class* const classes[] = {&kStore};
  static const struct controller* const controllers[] = {&kBefore};
  static const struct plugin plugin = {sizeof plugin, 1, 1, classes, 1, controllers};
  return &plugin;
}
