#pragma once

// StackWatch: a thread of user code whose stack overflows ends its process by SIGSEGV, as any bad access does. This
// says before, in the output of the rank, that it was the stack, and how large that may be. Who has a handler of that
// signal himself keeps it.
//
// Thread: it is of the thread that makes it. Lifetime: the destructor is called there.

#include <csignal>
#include <string>
#include <vector>

namespace monarch {

class StackWatch {
 public:
  // `who`: whose stack it is, for people: "actor greeter".
  explicit StackWatch(const std::string& who);
  StackWatch(const StackWatch&) = delete;
  StackWatch& operator=(const StackWatch&) = delete;
  ~StackWatch();

  // Once, before the first of them; under a sanitizer, which says it all itself, nothing.
  static void begin();

 private:
  std::vector<char> signal_stack_;
  std::string words_;
};

}  // namespace monarch
