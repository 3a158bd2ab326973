// A daemon and nothing else: what the test of a whole daemon starts and kills.

#include "transport/loop/signals.h"
#include "worker/daemon/daemon_main.h"

int main() {
  monarch::ignore_what_is_for_ranks();
  return monarch::daemon_main([](const std::string&) { return monarch::Status(); });  // it has no workspace
}
