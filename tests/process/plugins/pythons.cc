// A controller in C++ that drives the actors of tests/process/python/scorer.py: it names their endpoints by a class
// that it has of them.

#include <monarch/controller.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct Scorer : monarch::Actor {
  int add(int n);
  std::uint64_t length(const monarch::codec::Bytes& data);
  monarch::codec::Bytes made(int n, int byte);
  int fail(const std::string& why);
};

int pythons(monarch::Controller& controller) {
  const auto all = controller.mesh("p").actors<Scorer>("scorer").within(std::chrono::seconds(20));
  for (const auto& [rank, total] : all.call<&Scorer::add>(2).get()) std::cout << "total " << total << "\n";
  const monarch::codec::Bytes large{std::string(1U << 20U, 'x')};
  for (const auto& [rank, size] : all.call<&Scorer::length>(large).get()) std::cout << "length " << size << "\n";
  for (const auto& [rank, data] : all.call<&Scorer::made>(100'000, 7).get()) {
    std::cout << "made " << data.data.size() << " of " << static_cast<int>(data.data.front()) << "\n";
  }
  try {
    (void)all.call<&Scorer::fail>("no such thing").get();
  } catch (const monarch::RemoteError& error) {
    std::cout << "error " << error.what() << "\n";
  }
  return 0;
}

}  // namespace

MONARCH_CONTROLLER(pythons)
