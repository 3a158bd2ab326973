// Prints what load_libcuda() says, and before it whether the driver is in this process already.

#include <fstream>
#include <iostream>
#include <string>

#include "transport/tensor/cuda/load.h"

namespace {

bool is_there() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libcuda.so.1") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

int main() {
  std::cout << (is_there() ? "loaded before" : "not loaded before") << '\n';
  const auto loaded = monarch::tensor::load_libcuda();
  std::cout << (is_there() ? "loaded" : "not loaded") << '\n';
  std::cout << (loaded.ok() ? (*loaded)->device_name(0) : loaded.error().message) << '\n';
  const auto again = monarch::tensor::load_libcuda();
  const bool same = again.ok() ? *again == *loaded : again.error().message == loaded.error().message;
  std::cout << (same ? "the same again" : "another answer") << '\n';
}
