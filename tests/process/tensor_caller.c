/* A program of the C functions of tensors, built with the header as it was published first, and with today's
 * (tensors_before_test.py): it publishes three parts and pulls three in one array, version after version, also with others
 * that were built with the other header.
 *
 * usage: tensor_caller MESH... */

#include <dlfcn.h>
#include <inttypes.h>
#include <monarch/tensors_v1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, COLUMNS = 5, WIDE = 8, COUNT = 9, VERSIONS = 4, MESHES = 8 };

struct api {
  int (*session_open)(monarch_tensors_session**, monarch_tensors_error_v1*);
  void (*session_close)(monarch_tensors_session*);
  int (*publisher_open)(monarch_tensors_session*, const monarch_tensors_publish_v1*, monarch_tensors_publisher**,
                        monarch_tensors_error_v1*);
  int (*version_begin)(monarch_tensors_publisher*, uint64_t, monarch_tensors_error_v1*);
  int (*version_put)(monarch_tensors_publisher*, const monarch_tensors_part_v1*, monarch_tensors_error_v1*);
  int (*version_commit)(monarch_tensors_publisher*, monarch_tensors_error_v1*);
  int (*publisher_end)(monarch_tensors_publisher*, monarch_tensors_error_v1*);
  void (*publisher_free)(monarch_tensors_publisher*);
  int (*pull_make)(monarch_tensors_session*, const char*, const char*, const monarch_tensors_part_v1*, size_t,
                   monarch_tensors_pull**, monarch_tensors_error_v1*);
  int (*pull_run)(monarch_tensors_pull*, const monarch_tensors_run_v1*, monarch_tensors_pulled_v1*,
                  monarch_tensors_error_v1*);
  void (*pull_free)(monarch_tensors_pull*);
};

/* What each rank has of one version, in memory of three kinds. */
struct cells {
  int32_t rows[ROWS][WIDE]; /* the first COLUMNS of each row are the tensor's */
  double series[COUNT];
  uint8_t one;
};

/* The parts of an array, as its builder's header lays it. */
struct parts {
  monarch_tensors_part_v1 part[3];
  uint64_t size_of_rows[2];
  int64_t strides_of_rows[2];
  uint64_t of_rows[2];
  uint64_t at_rows[2];
  uint64_t size_of_series[1];
};

static void check(int code, const monarch_tensors_error_v1* error, const char* what) {
  if (code == MONARCH_TENSORS_OK) return;
  fprintf(stderr, "%s: %d: %s\n", what, code, error->text);
  exit(1);
}

static void* symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found != NULL) return found;
  fprintf(stderr, "the library has no %s\n", name);
  exit(1);
}

static struct api load(void) {
  const char* const path = getenv("MONARCH_RANK_LIBRARY");
  void* const library = dlopen(path == NULL ? "libmonarch-rank.so" : path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  struct api api;
  /* Standard C has no cast from an object to a function; POSIX says that the bits are the same. */
#define LOAD(name)                                                    \
  do {                                                                \
    void* const found = symbol(library, "monarch_tensors_" #name);    \
    _Static_assert(sizeof(found) == sizeof(api.name), "of one size"); \
    memcpy(&api.name, &found, sizeof(found));                         \
  } while (0)
  LOAD(session_open);
  LOAD(session_close);
  LOAD(publisher_open);
  LOAD(version_begin);
  LOAD(version_put);
  LOAD(version_commit);
  LOAD(publisher_end);
  LOAD(publisher_free);
  LOAD(pull_make);
  LOAD(pull_run);
  LOAD(pull_free);
  return api;
}

static int32_t row_value(uint64_t version, int row, int column) { return (int32_t)version * 1000 + row * 16 + column; }

static void fill(struct cells* cells, uint64_t version) {
  memset(cells, 0x5a, sizeof *cells);
  for (int row = 0; row < ROWS; ++row) {
    for (int column = 0; column < COLUMNS; ++column) cells->rows[row][column] = row_value(version, row, column);
  }
  for (int i = 0; i < COUNT; ++i) cells->series[i] = (double)version + i / 16.0;
  cells->one = (uint8_t)(version + 7);
}

static void describe(struct parts* parts, struct cells* cells) {
  memset(parts, 0, sizeof *parts);
  for (int i = 0; i < 3; ++i) {
    parts->part[i].struct_size = sizeof parts->part[i];
    parts->part[i].dtype_lanes = 1;
  }
  monarch_tensors_part_v1* const rows = &parts->part[0];
  parts->size_of_rows[0] = parts->of_rows[0] = ROWS;
  parts->size_of_rows[1] = parts->of_rows[1] = COLUMNS;
  parts->strides_of_rows[0] = WIDE * (int64_t)sizeof(int32_t);
  parts->strides_of_rows[1] = sizeof(int32_t);
  rows->name = "rows";
  rows->data = cells->rows;
  rows->dims = 2;
  rows->dtype_bits = 32;
  rows->size = parts->size_of_rows;
  rows->strides = parts->strides_of_rows;
  rows->of = parts->of_rows;
  rows->at = parts->at_rows;
  monarch_tensors_part_v1* const series = &parts->part[1];
  parts->size_of_series[0] = COUNT;
  series->name = "series";
  series->data = cells->series;
  series->dims = 1;
  series->dtype_code = 2;
  series->dtype_bits = 64;
  series->size = parts->size_of_series;
  monarch_tensors_part_v1* const one = &parts->part[2];
  one->name = "one";
  one->data = &cells->one;
  one->dtype_code = 1;
  one->dtype_bits = 8;
}

/* Each byte that the tensors have, and each that they have not. */
static void compare(const struct cells* got, uint64_t version, const char* mesh) {
  struct cells whole;
  fill(&whole, version);
  if (memcmp(got->rows, whole.rows, sizeof whole.rows) == 0 &&
      memcmp(got->series, whole.series, sizeof whole.series) == 0 && got->one == whole.one) {
    return;
  }
  fprintf(stderr, "version %" PRIu64 " of %s is not whole\n", version, mesh);
  exit(1);
}

static void publish(const struct api* api, monarch_tensors_publisher* publisher, uint64_t number) {
  monarch_tensors_error_v1 error = {.struct_size = sizeof error};
  struct cells cells;
  struct parts parts;
  fill(&cells, number);
  describe(&parts, &cells);
  check(api->version_begin(publisher, number, &error), &error, "version_begin");
  for (int i = 0; i < 3; ++i) check(api->version_put(publisher, &parts.part[i], &error), &error, "version_put");
  check(api->version_commit(publisher, &error), &error, "version_commit");
}

int main(int count, char** meshes) {
  const struct api api = load();
  monarch_tensors_error_v1 error = {.struct_size = sizeof error};
  monarch_tensors_session* session = NULL;
  check(api.session_open(&session, &error), &error, "session_open");
  const monarch_tensors_publish_v1 options = {
      .struct_size = sizeof options, .name = "c", .patience_ms = -1, .linger_ms = -1};
  monarch_tensors_publisher* publisher = NULL;
  check(api.publisher_open(session, &options, &publisher, &error), &error, "publisher_open");
  const int readers = count - 1 < MESHES ? count - 1 : MESHES;
  struct cells cells[MESHES];
  struct parts parts;
  monarch_tensors_pull* pulls[MESHES];
  monarch_tensors_version_v1 last[MESHES] = {0};
  for (int i = 0; i < readers; ++i) {
    memset(&cells[i], 0x5a, sizeof cells[i]);
    describe(&parts, &cells[i]);
    check(api.pull_make(session, meshes[1 + i], "c", parts.part, 3, &pulls[i], &error), &error, "pull_make");
  }
  /* None is more than one version ahead of another: so there is something newer to wait for after the first pull. */
  for (uint64_t number = 1; number <= VERSIONS; ++number) {
    publish(&api, publisher, number);
    for (int i = 0; i < readers; ++i) {
      while (last[i].number < number) {
        monarch_tensors_run_v1 run = {.struct_size = sizeof run, .timeout_ms = 60000};
        if (last[i].number > 0) run.newer_than = &last[i];
        monarch_tensors_pulled_v1 pulled = {.struct_size = sizeof pulled};
        check(api.pull_run(pulls[i], &run, &pulled, &error), &error, "pull_run");
        compare(&cells[i], pulled.number, meshes[1 + i]);
        if (pulled.number <= last[i].number) {
          fprintf(stderr, "version %" PRIu64 " is not newer\n", pulled.number);
          return 1;
        }
        last[i] = (monarch_tensors_version_v1){sizeof last[i], pulled.gang, pulled.generation, pulled.number};
      }
    }
  }
  check(api.publisher_end(publisher, &error), &error, "publisher_end");
  for (int i = 0; i < readers; ++i) {
    printf("%zu bytes a part: version %" PRIu64 " of %s\n", sizeof(monarch_tensors_part_v1), last[i].number,
           meshes[1 + i]);
    api.pull_free(pulls[i]);
  }
  api.publisher_free(publisher);
  api.session_close(session);
  return 0;
}
