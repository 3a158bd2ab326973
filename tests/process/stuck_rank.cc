// A rank that makes a file `there.RANK` and then waits for ever: the rank that its argument names for a lock that it
// holds already, the others in a pause. Its functions stay what they are called here.

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

extern "C" {

__attribute__((noinline)) int step_under_lock() {
  (void)pthread_mutex_lock(&lock);
  return pthread_mutex_lock(&lock) + 1;  // for ever
}

__attribute__((noinline)) int step() {
  for (;;) (void)pause();
}
}

int main(int argc, char** argv) {
  const char* rank = std::getenv("MONARCH_RANK");
  if (argc != 2 || rank == nullptr) return 2;
  std::FILE* mark = std::fopen((std::string("there.") + rank).c_str(), "w");
  if (mark == nullptr || std::fclose(mark) != 0) return 3;
  const volatile int never = std::strcmp(argv[1], rank) == 0 ? step_under_lock() : step();
  return never;
}
