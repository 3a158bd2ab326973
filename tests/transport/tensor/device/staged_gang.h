#pragma once

// StagedGang: two ranks that publish what their GPU's streams write, and a reader who pulls it into memory of his GPU,
// over the real sockets and slots. Each byte says of which version it is, and where. Streams come late, by the seed.
//
// Thread: the test's.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/tensor/device/fake_gpu.h"
#include "tests/transport/tensor/tensor_gang.h"
#include "transport/tensor/device_destination.h"

namespace monarch::tensor {

inline constexpr Dtype kUint8{1, 8, 1};

// Tensors of few rows, more of them than a reader has rooms.
struct Staged {
  static constexpr std::uint64_t kTensors = 18;
  static constexpr std::uint64_t kRows = 4;       // of each, two for each rank
  static constexpr std::uint64_t kColumns = 128;  // bytes
  static constexpr std::uint64_t kHalf = kColumns / 2;

  static std::uint8_t byte(std::uint64_t version, std::uint64_t tensor, std::uint64_t row, bool second) {
    return static_cast<std::uint8_t>(1 + (version * 131 + tensor * 29 + row * 7 + (second ? 3 : 0)) % 250);
  }
  static TensorKind kind(std::uint64_t tensor) { return {text("t", tensor), kUint8, {kRows, kColumns}}; }
};

struct StagedOptions {
  LinkWays ways;
  bool pins = true;
  std::uint64_t pitch = Staged::kColumns;  // of rows in memory of GPUs
  bool drains = false;                     // its streams, before anything goes: a mutant has copies under way then
  // The driver as each side has it, and what a reader's destination is made by.
  std::function<SharedCuda(SharedCuda)> owner = [](SharedCuda cuda) { return cuda; };
  std::function<SharedCuda(SharedCuda)> reader = [](SharedCuda cuda) { return cuda; };
  std::function<std::unique_ptr<DeviceDestination>(SharedCuda, CudaEnd, std::string)> destination =
      [](SharedCuda cuda, CudaEnd end, std::string name) {
        return std::make_unique<DeviceDestination>(std::move(cuda), std::move(end), std::move(name),
                                                   std::vector<VerbsDestination::Span>{});
      };
};

class StagedGang {
 public:
  explicit StagedGang(const StagedOptions& options)
      : options_(options), gang_((test_cuda = end_by(options.owner), 2U), 1), cuda_(options.reader(gpu_.shared())) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      streams_[rank] = gpu_.make_stream();
      memory_[rank] = gpu_.allocate(Staged::kTensors * 2 * options.pitch);
    }
    stream_ = gpu_.make_stream();
    into_ = gpu_.allocate(Staged::kTensors * Staged::kRows * options.pitch);
    std::vector<PullPart> parts;
    for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
      parts.push_back({.tensor = Staged::kind(tensor),
                       .box = whole(Staged::kind(tensor).shape),
                       .data = at(into_ + tensor * Staged::kRows * options.pitch),
                       .strides = {options.pitch, 1},
                       .device = 0});
    }
    auto destination = options.destination(cuda_, end_by(options.reader), "weights of trainer");
    reader_ = std::make_unique<TestReader>(std::move(parts), options.ways, "weights", std::move(destination));
    reader_->finds(gang_);
  }
  ~StagedGang() {
    if (options_.drains) drain();
    reader_.reset();
    for (std::uint32_t rank = 0; rank < 2; ++rank) gang_.kill(rank);
    test_cuda = {};
    drain();
    for (const std::uint64_t stream : {streams_[0], streams_[1], stream_}) gpu_.end_stream(stream);
    for (const std::uint64_t memory : {memory_[0], memory_[1], into_}) gpu_.release(memory);
  }

  TensorGang& gang() { return gang_; }
  void drain() {
    for (const std::uint64_t stream : {streams_[0], streams_[1], stream_}) gpu_.drain(stream);
  }
  std::uint64_t stream(std::uint32_t rank) const { return streams_[rank]; }
  std::uint64_t reader_stream() const { return stream_; }
  TestReader& reader() { return *reader_; }

  // As kernels of the rank's stream write it.
  void write(std::uint32_t rank, std::uint64_t version) {
    for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
      for (std::uint64_t row = 0; row < 2; ++row) {
        for (const bool second : {false, true}) {
          gpu_.fill(streams_[rank], memory_[rank] + (tensor * 2 + row) * options_.pitch + (second ? Staged::kHalf : 0),
                    Staged::byte(version, tensor, rank * 2 + row, second), Staged::kHalf);
        }
      }
    }
  }
  // Writes it, puts it, and writes other bytes behind that.
  Status publish(std::uint32_t rank, std::uint64_t version, Duration patience = Duration::forever()) {
    MONARCH_TRY(put(rank, version));
    return gang_.publisher(rank).commit(patience);
  }
  Status put(std::uint32_t rank, std::uint64_t version) {
    Publisher& publisher = gang_.publisher(rank);
    MONARCH_TRY(publisher.begin(version));
    write(rank, version);
    for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
      const Status done = publisher.put_device(Staged::kind(tensor), {{rank * 2, 0}, {2, Staged::kColumns}},
                                               {at(memory_[rank] + tensor * 2 * options_.pitch), {0, streams_[rank]}},
                                               {options_.pitch, 1});
      if (!done.ok()) publisher.abandon();
      MONARCH_TRY(done);
    }
    gpu_.fill(streams_[rank], memory_[rank], 255, Staged::kTensors * 2 * options_.pitch);
    return {};
  }
  void publish(std::uint64_t version) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const Status done = publish(rank, version);
      ASSERT_TRUE(done.ok()) << done.error().message;
    }
  }
  PullOutcome pull(std::optional<PulledVersion> newer_than = {}, Duration timeout = Duration::seconds(20)) {
    gpu_.fill(stream_, into_, 254, Staged::kTensors * Staged::kRows * options_.pitch);
    return reader_->pull->run({.newer_than = newer_than, .timeout = timeout, .stream = stream_});
  }
  // How many bytes are not those of the version, or lie between rows and were written.
  std::uint64_t wrong(std::uint64_t version) {
    const auto seen = gpu_.peek(into_, Staged::kTensors * Staged::kRows * options_.pitch);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < seen.size(); ++i) {
      const std::uint64_t column = i % options_.pitch;
      const std::uint64_t row = i / options_.pitch;
      const std::uint8_t meant =
          column >= Staged::kColumns
              ? 254
              : Staged::byte(version, row / Staged::kRows, row % Staged::kRows, column >= Staged::kHalf);
      if (seen[i] != meant) ++wrong;
    }
    return wrong;
  }
  const std::vector<std::string>& said() const { return said_; }

 private:
  static char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }
  CudaEnd end_by(const std::function<SharedCuda(SharedCuda)>& by) {
    return {.find = [this, by]() -> Result<SharedCuda> { return by(gpu_.shared()); },
            .pins = options_.pins,
            .say = [this](const std::string& line) { said_.push_back(line); }};
  }

  FakeGpu& gpu_ = FakeGpu::it();
  const StagedOptions options_;
  std::vector<std::string> said_;
  TensorGang gang_;
  SharedCuda cuda_;
  std::array<std::uint64_t, 2> streams_{};
  std::array<std::uint64_t, 2> memory_{};
  std::uint64_t stream_ = 0;
  std::uint64_t into_ = 0;
  std::unique_ptr<TestReader> reader_;
};

}  // namespace monarch::tensor
