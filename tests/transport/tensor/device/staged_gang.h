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

#include "tests/cuda/fake_gpu.h"
#include "tests/transport/tensor/tensor_gang.h"
#include "transport/tensor/cuda/device_destination.h"
#include "transport/tensor/cuda/load.h"

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
      : options_(options), gang_((test_cuda = end_by(options.owner), 2U), 1) {
    std::vector<PullPart> parts;
    for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
      parts.push_back({.tensor = Staged::kind(tensor),
                       .box = whole(Staged::kind(tensor).shape),
                       .data = into_.data() + tensor * Staged::kRows * options.pitch,
                       .strides = {options.pitch, 1},
                       .device = 0});
    }
    const CudaEnd end = end_by(options.reader);
    auto destination = options.destination(end.find().value(), end, "weights of trainer");
    reader_ = std::make_unique<TestReader>(std::move(parts), options.ways, "weights", std::move(destination));
    reader_->finds(gang_);
  }
  StagedGang(const StagedGang&) = delete;
  StagedGang& operator=(const StagedGang&) = delete;
  ~StagedGang() {
    if (options_.drains) drain();
    reader_.reset();
    for (std::uint32_t rank = 0; rank < 2; ++rank) gang_.kill(rank);
    test_cuda = {};
    drain();
  }

  TensorGang& gang() { return gang_; }
  TestReader& reader() { return *reader_; }
  GpuStream& stream(std::uint32_t rank) { return streams_[rank]; }
  GpuStream& reader_stream() { return stream_; }
  void drain() {
    for (GpuStream* const one : {&streams_[0], &streams_[1], &stream_}) one->drain();
  }

  // As kernels of the rank's stream write it.
  void write(std::uint32_t rank, std::uint64_t version) {
    for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
      for (std::uint64_t row = 0; row < 2; ++row) {
        for (const bool second : {false, true}) {
          memory_[rank].fill(streams_[rank].stream(),
                             static_cast<char>(Staged::byte(version, tensor, rank * 2 + row, second)),
                             (tensor * 2 + row) * options_.pitch + (second ? Staged::kHalf : 0), Staged::kHalf);
        }
      }
    }
  }
  // Writes it, puts it, and writes other bytes behind that.
  Status put(std::uint32_t rank, std::uint64_t version) {
    Publisher& publisher = gang_.publisher(rank);
    MONARCH_TRY(publisher.begin(version));
    write(rank, version);
    for (std::uint64_t tensor = 0; tensor < Staged::kTensors; ++tensor) {
      const DeviceMemory from{memory_[rank].data() + tensor * 2 * options_.pitch, streams_[rank].stream()};
      const Status done =
          publisher.put_device(Staged::kind(tensor), {{rank * 2, 0}, {2, Staged::kColumns}}, from, {options_.pitch, 1});
      if (!done.ok()) publisher.abandon();
      MONARCH_TRY(done);
    }
    memory_[rank].fill(streams_[rank].stream(), kOther);
    return {};
  }
  Status publish(std::uint32_t rank, std::uint64_t version, Duration patience = Duration::forever()) {
    MONARCH_TRY(put(rank, version));
    return gang_.publisher(rank).commit(patience);
  }
  void publish(std::uint64_t version) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const Status done = publish(rank, version);
      ASSERT_TRUE(done.ok()) << done.error().message;
    }
  }
  PullOutcome pull(std::optional<PulledVersion> newer_than = {}, Duration timeout = Duration::seconds(20)) {
    into_.fill(stream_.stream(), kOther);
    return reader_->pull->run({.newer_than = newer_than, .timeout = timeout, .stream = stream_.stream().handle});
  }
  // How many bytes are not those of the version, or lie between rows and were written.
  std::uint64_t wrong(std::uint64_t version) const {
    const std::string seen = into_.peek();
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < seen.size(); ++i) {
      const std::uint64_t column = i % options_.pitch;
      const std::uint64_t row = i / options_.pitch;
      const bool second = column >= Staged::kHalf;
      const auto byte = static_cast<char>(Staged::byte(version, row / Staged::kRows, row % Staged::kRows, second));
      if (seen[i] != (column >= Staged::kColumns ? kOther : byte)) ++wrong;
    }
    return wrong;
  }
  const std::vector<std::string>& said() const { return said_; }

 private:
  static constexpr char kOther = '\xff';

  CudaEnd end_by(const std::function<SharedCuda(SharedCuda)>& by) {
    return {.find = [by]() -> Result<SharedCuda> { return by(load_libcuda().value()); },
            .pins = options_.pins,
            .say = [this](const std::string& line) { said_.push_back(line); }};
  }
  std::uint64_t bytes_of(std::uint64_t rows) const { return Staged::kTensors * rows * options_.pitch; }

  const StagedOptions options_;
  std::vector<std::string> said_;
  std::array<GpuMemory, 2> memory_{GpuMemory(bytes_of(2)), GpuMemory(bytes_of(2))};
  std::array<GpuStream, 2> streams_;
  GpuMemory into_{bytes_of(Staged::kRows)};
  GpuStream stream_;
  TensorGang gang_;
  std::unique_ptr<TestReader> reader_;
};

}  // namespace monarch::tensor
