// A daemon and nothing else: what the test of a whole daemon starts and kills.

#include "worker/daemon/daemon_main.h"

int main() {
  return monarch::daemon_main([](const std::string&) { return monarch::Status(); });  // it has no workspace
}
