// verbs-pull OWNER_DEVICE READER_DEVICE RUNS: pulls 64 MiB of another process by READs, and says the bytes a second of
// each run, a line each. All bytes are compared after each. The first, which is not counted, warms both sides.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "tests/transport/tensor/tensor_gang.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/verbs/libibverbs.h"
#include "transport/tensor/verbs/open_verbs.h"

namespace monarch::tensor {
namespace {

const Matrix kMatrix{4'096, 4'096};  // 64 MiB

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "verbs-pull: " << why << '\n';
  std::_Exit(1);
}

VerbsEnd open(const char* name) {
  const auto library = load_libibverbs();
  if (!library.ok()) fail(library.error().message);
  VerbsEnd end = open_verbs(**library, {.name = name});
  if (end.device == nullptr) fail(end.why_not);
  return end;
}

[[noreturn]] void publish(const char* device, int words) {
  test_verbs = open(device);
  TensorGang gang(1, 1);
  if (!gang.publish(0, kMatrix, 1).ok()) fail("nothing is published");
  const std::string card = card_text(gang.card());
  if (::send(words, card.data(), card.size(), MSG_NOSIGNAL) < 0) fail("nobody reads");
  char end = 0;
  (void)::recv(words, &end, 1, 0);
  std::_Exit(0);
}

void pull(const char* device, const Card& card, int runs) {
  test_reader_verbs = open(device);
  ColumnReader reader(kMatrix, 0, kMatrix.columns, {.machine = {}, .shm = false, .verbs = true, .tcp = false});
  reader.finds({.gang = 0, .rank = 0, .generation = 1, .card = card});
  for (int run = 0; run <= runs; ++run) {
    reader.memory.assign(reader.memory.size(), -1);
    const PullOutcome outcome = reader.run();
    const auto* const got = std::get_if<Pulled>(&outcome);
    if (got == nullptr) fail(std::get<PullFailure>(outcome).text);
    if (got->by_verbs != 1 || !reader.is_whole(1)) fail("it is not whole");
    const double seconds = static_cast<double>(got->time.count_nanoseconds()) / 1e9;
    if (run > 0) std::cout << static_cast<double>(got->bytes) / seconds << std::endl;
  }
}

}  // namespace
}  // namespace monarch::tensor

int main(int count, char** arguments) {
  using namespace monarch::tensor;
  std::array<int, 2> ends{};
  if (count != 4 || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return 2;
  const pid_t owner = ::fork();
  if (owner == 0) publish(arguments[1], ends[1]);
  std::array<char, 2'048> card{};
  const ssize_t got = ::recv(ends[0], card.data(), card.size(), 0);
  if (got <= 0) return 1;
  pull(arguments[2], parse_card({card.data(), static_cast<std::size_t>(got)}).value(), std::atoi(arguments[3]));
  (void)::kill(owner, SIGTERM);
  return 0;
}
