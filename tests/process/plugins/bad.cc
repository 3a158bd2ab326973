// Actors that cannot be made.

#include <monarch/controller.hpp>

#include <cstdlib>
#include <stdexcept>
#include <thread>

struct Throws : monarch::Actor {
  Throws() { throw std::runtime_error("no such model"); }
  void f() {}
};
struct Aborts : monarch::Actor {
  Aborts() { std::abort(); }
  void f() {}
};
struct Hangs : monarch::Actor {
  Hangs() { std::this_thread::sleep_for(std::chrono::hours(1)); }
  void f() {}
};
struct Wants : monarch::Actor {
  explicit Wants(const monarch::Args& args) { (void)args.get<double>("rate"); }
  void f() {}
};

MONARCH_PLUGIN(MONARCH_ACTOR(Throws, &Throws::f), MONARCH_ACTOR(Aborts, &Aborts::f), MONARCH_ACTOR(Hangs, &Hangs::f),
               MONARCH_ACTOR(Wants, &Wants::f))
