// What configs/weights.py does, in C++: a trainer publishes the rows of a matrix, a generator pulls its columns.
//
//   c++ -std=c++20 $(pkg-config --cflags-only-I monarch-actor) weights.cc -o weights
//
// Then `program: [./weights, trainer]` and `program: [./weights, generator]` in configs/weights.yaml.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <monarch/tensor.hpp>

namespace {

constexpr std::uint64_t kRows = 96;
constexpr std::uint64_t kColumns = 80;
constexpr std::uint64_t kSteps = 20;

struct Part {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

Part part_of(std::uint64_t size, std::uint64_t index, std::uint64_t count) {
  const std::uint64_t first = size * index / count;
  return {first, size * (index + 1) / count - first};
}

std::int32_t value(std::uint64_t step, std::uint64_t row, std::uint64_t column) {
  return static_cast<std::int32_t>((step * 2'654'435'761 + row * 40'503 + column * 7) & 0x7fffffff);
}

std::vector<std::int32_t> matrix(std::uint64_t step, const Part& rows, const Part& columns) {
  std::vector<std::int32_t> cells;
  for (std::uint64_t row = rows.first; row < rows.first + rows.count; ++row) {
    for (std::uint64_t column = columns.first; column < columns.first + columns.count; ++column) {
      cells.push_back(value(step, row, column));
    }
  }
  return cells;
}

void train(monarch::TensorSession& session, std::uint64_t rank, std::uint64_t size) {
  const Part rows = part_of(kRows, rank, size);
  auto weights = session.publisher("weights");
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const std::vector<std::int32_t> cells = matrix(step, rows, {0, kColumns});
    weights.version(step, [&](monarch::TensorVersion& version) {
      version.put("w", monarch::view(cells.data(), {rows.count, kColumns}),
                  {.of = {kRows, kColumns}, .at = {rows.first, 0}});
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  weights.end();
}

int generate(monarch::TensorSession& session, std::uint64_t rank, std::uint64_t size) {
  const Part columns = part_of(kColumns, rank, size);
  std::vector<std::int32_t> cells(kRows * columns.count);
  auto pull = session.source("trainer", "weights")
                  .into({{"w",
                          monarch::view(cells.data(), {kRows, columns.count}),
                          {.of = {kRows, kColumns}, .at = {0, columns.first}}}});
  std::optional<monarch::Pulled> got;
  int pulls = 0;
  while (!got || got->version < kSteps - 1) {
    got = pull.run({.newer_than = got, .timeout = std::chrono::seconds(60), .next_generation = true});
    if (cells != matrix(got->version, {0, kRows}, columns)) {
      std::cerr << "version " << got->version << " is not whole\n";
      return 1;
    }
    ++pulls;
  }
  const std::string ways = (got->by_shm > 0 ? "shm=" + std::to_string(got->by_shm) : "") +
                           (got->by_verbs > 0 ? "verbs=" + std::to_string(got->by_verbs) : "") +
                           (got->by_tcp > 0 ? "tcp=" + std::to_string(got->by_tcp) : "");
  std::cout << "generator " << rank << ": " << pulls << " pulls, each whole, up to version " << got->version << " ("
            << ways << ")" << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mesh = count > 1 ? arguments[1] : "";
  const std::uint64_t rank = std::strtoull(std::getenv("MONARCH_RANK"), nullptr, 10);
  const std::uint64_t size = std::strtoull(std::getenv("MONARCH_WORLD_SIZE"), nullptr, 10);
  try {
    monarch::TensorSession session;
    if (mesh != "trainer") return generate(session, rank, size);
    train(session, rank, size);
    return 0;
  } catch (const monarch::TensorError& error) {
    std::cerr << mesh << ' ' << rank << ": " << error.what() << '\n';
    return 1;
  }
}
