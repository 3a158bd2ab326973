// How many page faults a call with 64 MiB costs its caller, its rank and what is between them, once its block is warm.

#include <monarch/controller.hpp>

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

using monarch::Buffer;

namespace {

constexpr std::size_t kBytes = (64U << 20U) - 4096;
constexpr int kWarm = 4;
constexpr int kCalls = 5;

std::uint64_t sum_of(std::string_view bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 512) sum = sum * 31 + static_cast<unsigned char>(bytes[i]);
  return sum;
}

struct Reader : monarch::Actor {
  std::uint64_t take(const Buffer& buffer) { return sum_of(buffer.view()); }
};

// Those of all that the keeper of this host has started: ranks, this one among them, the post and the others of the
// worker.
std::uint64_t faults_of_host() {
  std::uint64_t faults = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string state;
    std::string skipped;
    pid_t parent = 0;
    std::uint64_t minor = 0;
    fields >> state >> parent;  // then pgrp, session, tty_nr, tpgid, flags, minflt: proc(5)
    for (int i = 0; i < 5; ++i) fields >> skipped;
    if (fields >> minor && parent == ::getppid()) faults += minor;
  }
  return faults;
}

std::uint64_t of_a_call(const monarch::ActorMesh<Reader>& one, const Buffer& buffer) {
  const std::uint64_t sum = sum_of(buffer.view());
  std::uint64_t before = 0;
  for (int i = 0; i < kWarm + kCalls; ++i) {
    if (i == kWarm) before = faults_of_host();
    if (one.call_one<&Reader::take>(buffer).get() != sum) throw std::runtime_error("other bytes");
  }
  return (faults_of_host() - before) / kCalls;
}

int page_faults(monarch::Controller& controller) {
  const auto one = controller.mesh("t").actors<Reader>("reader").within(std::chrono::seconds(20));
  Buffer::Filling filling = Buffer::make(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) filling.data()[i] = static_cast<char>(i * 31 + i / 4099);
  const auto bytes = std::make_shared<std::string>(filling.data(), kBytes);
  const std::uint64_t made = of_a_call(one, std::move(filling).done());
  const std::uint64_t copied = of_a_call(one, Buffer(*bytes, bytes));
  std::cout << "{\"made\": " << made << ", \"copied\": " << copied << "}" << std::endl;
  return 0;
}

}  // namespace

MONARCH_PLUGIN(MONARCH_ACTOR(Reader, &Reader::take))
MONARCH_CONTROLLER(page_faults)
