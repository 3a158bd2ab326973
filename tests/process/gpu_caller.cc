// A rank in C++ that publishes and pulls memory of a GPU by device_view(), on late streams (tensors_gpu_test.py).

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include <monarch/tensor.hpp>

#include "tests/cuda/fake_gpu.h"

namespace {

using monarch::tensor::GpuMemory;
using monarch::tensor::GpuStream;

constexpr std::uint64_t kRows = 8;
constexpr std::uint64_t kColumns = 16;
constexpr unsigned kLateUs = 3'000'000;  // of a stream whose end is waited for

const void* handle(const GpuStream& stream) { return reinterpret_cast<const void*>(stream.stream().handle); }

}  // namespace

int main() {
  const std::string mesh = std::getenv("MONARCH_MESH");
  GpuMemory weights(kRows * kColumns);
  GpuMemory target(kRows * kColumns);
  GpuStream ours;
  GpuStream theirs;
  try {
    monarch::TensorSession session;
    auto publisher = session.publisher(mesh, {.linger = std::chrono::milliseconds(0)});
    const auto put = [&](monarch::TensorVersion& version) {
      version.put("w", monarch::device_view(weights.data(), 0, handle(ours), {kRows, kColumns}));
      weights.fill(ours.stream(), 0);
    };
    weights.fill(ours.stream(), 7);
    publisher.version(1, put);
    target.fill(theirs.stream(), 1);
    auto pull =
        session.source(mesh, mesh).into({{"w", monarch::device_view(target.data(), -1, nullptr, {kRows, kColumns})}});
    const monarch::Pulled got = pull.run({.timeout = std::chrono::seconds(60), .stream = handle(theirs)});
    if (got.version != 1 || target.peek() != std::string(kRows * kColumns, 7)) {
      std::cout << "program = torn" << std::endl;
      return 0;
    }
    ours.spin(kLateUs);
    publisher.version(2, put, std::chrono::milliseconds(50));
    std::cout << "program = its end was not waited for" << std::endl;
  } catch (const monarch::TensorError& error) {
    const std::string said = error.what();
    std::cout << (error.code == MONARCH_TENSORS_TIMEOUT ? "program = whole, and then: " : "program = ")
              << said.substr(0, said.find(" for longer than ")) << std::endl;
  }
  return 0;
}
