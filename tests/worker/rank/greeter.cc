// A plugin as a user writes one.

#include <monarch/controller.hpp>

#include <stdexcept>
#include <string>

struct Greeter : monarch::Actor {
  std::string say_hello(const std::string& text) {
    return "hello " + text + " from " + to_string(context().coordinates());
  }
  void say_bye() { throw std::runtime_error("saying bye is hard"); }
};

int drive(monarch::Controller& controller) {
  auto greeters = controller.mesh("trainer").actors<Greeter>("greeter");
  return greeters.call(&Greeter::say_hello, "world").get().size() == greeters.size() ? 0 : 1;
}

MONARCH_PLUGIN(MONARCH_ACTOR(Greeter, &Greeter::say_hello, &Greeter::say_bye))
MONARCH_CONTROLLER(drive)
