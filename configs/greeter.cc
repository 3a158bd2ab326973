// An actor that greets, and the controller that calls it: configs/actors.yaml, and README.md's first program.

#include <monarch/controller.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

struct Greeter : monarch::Actor {
  std::string say_hello(const std::string& text) {
    return "hello " + text + " from " + to_string(context().coordinates());
  }
  void say_bye() { throw std::runtime_error("saying bye is hard"); }
};

int drive(monarch::Controller& c) {
  auto greeters = c.mesh("trainer").actors<Greeter>("greeter").within(5s);
  auto hello = greeters.slice("gpu", 0, 4).call(&Greeter::say_hello, "world");
  for (const auto& [rank, text] : hello.get()) std::cout << rank << ": " << text << "\n";
  for (const auto& bye : greeters.call<&Greeter::say_bye>().collect()) {  // of each rank a value or an error
    if (!bye) std::cout << bye.rank << " said: " << bye.text << "\n";
  }
  return 0;
}

MONARCH_PLUGIN(MONARCH_ACTOR(Greeter, &Greeter::say_hello, &Greeter::say_bye))
MONARCH_CONTROLLER(drive)
