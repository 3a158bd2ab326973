#pragma once

// TensorGang: ranks of one gang that publish, all in this process, and readers of them: owners' threads, sockets, slots
// and lanes are the real ones; what the posts of a job would tell is told by the test.
//
// Thread: the test's; a publisher and a reader may each be given to another.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/machine.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/tensor/publisher.h"
#include "transport/tensor/pull.h"

namespace monarch::tensor {

inline constexpr Dtype kInt32{0, 32, 1};

// The devices of owners and of readers that a test makes, where it has some (test_devices.h).
inline VerbsEnd test_verbs;
inline VerbsEnd test_reader_verbs;
// The driver of owners, where a test has one.
inline CudaEnd test_cuda;

// Rows of a matrix; each element says where it is, and of which version.
struct Matrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;

  TensorKind kind(const std::string& name = "w") const { return {name, kInt32, {rows, columns}}; }
  std::int32_t at(std::uint64_t version, std::uint64_t row, std::uint64_t column) const {
    return static_cast<std::int32_t>(version * 1'000'003 + row * columns + column);
  }
  std::vector<std::int32_t> part(std::uint64_t version, const Box& box) const {
    std::vector<std::int32_t> values;
    values.reserve(box.size[0] * box.size[1]);
    for (std::uint64_t row = box.at[0]; row < box.end(0); ++row) {
      for (std::uint64_t column = box.at[1]; column < box.end(1); ++column) values.push_back(at(version, row, column));
    }
    return values;
  }
};

// What is told of it is told here, as the test wants it.
class ToldFinder final : public RegistrarFinder {
 public:
  explicit ToldFinder(std::function<void(bool again)> asked) : asked_(std::move(asked)) {}
  void ask(const std::map<std::uint32_t, std::uint64_t>& over) override {
    asked_(std::any_of(over.begin(), over.end(), [](const auto& gang) { return gang.second > 0; }));
  }
  void stop_asking() override {}

 private:
  const std::function<void(bool again)> asked_;
};

class TensorGang {
 public:
  TensorGang(std::uint32_t ranks, std::uint64_t generation, OwnerOptions owner = {}) : generation_(generation) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      OwnerPlace place{.rank = {"trainer", rank, generation}, .address = "127.0.0.1", .verbs = test_verbs};
      owners_.push_back(OwnerThread::start(std::move(place)).value());
    }
    PublicationOptions options{.name = "weights", .publishers = {}, .registrar = 0, .owner = owner};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) options.publishers.insert(rank);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if (rank > 0) owners_[rank]->give(owner_order::Found{registrar_of(rank)});
      publishers_.push_back(Publisher::open(*owners_[rank], options, test_cuda).value());
    }
  }

  std::uint64_t generation() const { return generation_; }
  const Card& card() const { return owners_.front()->card(); }
  // The card of the first rank, as posts give it to that one.
  Card registrar_of(std::uint32_t rank) const {
    const LinkRank& who = owners_[rank]->rank();
    return with_secret(card(), personal_secret(owners_[0]->key(), who.mesh, who.rank, who.generation));
  }
  Publisher& publisher(std::uint32_t rank) { return *publishers_[rank]; }
  OwnerThread& owner(std::uint32_t rank) { return *owners_[rank]; }
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(owners_.size()); }
  // As kill -9 would.
  void kill(std::uint32_t rank) {
    publishers_[rank].reset();
    owners_[rank].reset();
  }

  // Rank r has the r-th part of the rows.
  Box rows_of(const Matrix& matrix, std::uint32_t rank) const {
    const std::uint64_t from = matrix.rows * rank / ranks();
    return {{from, 0}, {matrix.rows * (rank + 1) / ranks() - from, matrix.columns}};
  }
  Status publish(std::uint32_t rank, const Matrix& matrix, std::uint64_t version) {
    Publisher& publisher = *publishers_[rank];
    MONARCH_TRY(publisher.begin(version));
    const Box box = rows_of(matrix, rank);
    const std::vector<std::int32_t> values = matrix.part(version, box);
    MONARCH_TRY(publisher.put(matrix.kind(), box, reinterpret_cast<const char*>(values.data()),
                              dense_strides(box.size, sizeof(std::int32_t))));
    return publisher.commit();
  }
  void publish(const Matrix& matrix, std::uint64_t version) {
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      const Status done = publish(rank, matrix, version);
      ASSERT_TRUE(done.ok()) << done.error().message;
    }
  }

 private:
  const std::uint64_t generation_;
  std::vector<std::unique_ptr<OwnerThread>> owners_;
  std::vector<std::unique_ptr<Publisher>> publishers_;
};

// A reader of the trainer's parts, which are in its memory.
class TestReader {
 public:
  TestReader(std::vector<PullPart> parts, LinkWays ways, const std::string& publication = "weights",
             std::unique_ptr<DeviceDestination> devices = nullptr) {
    FinderWords words = Inbox<FinderWord>::create(kFinderWords).value();
    words_ = words;
    auto finder = std::make_unique<ToldFinder>([this](bool again) {
      if (again && verdict) tell(*verdict);
      if (gang_) tell(*gang_);
      has_asked = true;
    });
    ways.machine = read_boot_id();
    pull = std::make_unique<Pull>(
        PullPlace{{"generator", 0, 1}, "trainer", publication, std::move(ways), test_reader_verbs}, std::move(parts),
        std::move(finder), words, std::move(devices));
  }

  // Whoever asks from now on finds that one.
  void finds(const finder_word::Found& found) { gang_ = found; }
  void finds(const TensorGang& gang) {
    finds({.gang = 0, .rank = 0, .generation = gang.generation(), .card = gang.card()});
  }
  void finds_nobody() { gang_.reset(); }
  void tell(FinderWord word) { EXPECT_TRUE(words_->put(std::move(word))); }

  PullOutcome run(std::optional<PulledVersion> newer_than = {}, Duration timeout = Duration::seconds(20),
                  bool next_generation = false) {
    return pull->run({.newer_than = newer_than, .timeout = timeout, .next_generation = next_generation});
  }

 private:
  FinderWords words_;
  std::optional<finder_word::Found> gang_;

 public:
  std::atomic<bool> has_asked{false};
  // Heard by who asks once that generation is over; nothing: supervision says nothing.
  std::optional<FinderWord> verdict;
  std::unique_ptr<Pull> pull;
};

struct Columns {
  Columns(const Matrix& of, std::uint64_t from, std::uint64_t to)
      : matrix(of), box{{0, from}, {of.rows, to - from}}, memory(of.rows * (to - from), -1) {}
  PullPart part(const std::string& tensor) {
    return {.tensor = matrix.kind(tensor),
            .box = box,
            .data = reinterpret_cast<char*>(memory.data()),
            .strides = dense_strides(box.size, sizeof(std::int32_t))};
  }
  const Matrix matrix;
  const Box box;
  std::vector<std::int32_t> memory;
};

// A reader of some columns.
class ColumnReader : public Columns, public TestReader {
 public:
  ColumnReader(const Matrix& of, std::uint64_t from, std::uint64_t to, LinkWays ways,
               const std::string& publication = "weights", const std::string& tensor = "w")
      : Columns(of, from, to), TestReader({part(tensor)}, std::move(ways), publication) {}
  // Each element is that of the version.
  bool is_whole(std::uint64_t version) const { return memory == matrix.part(version, box); }
};

inline const Pulled& pulled(const PullOutcome& outcome) {
  const auto* const failure = std::get_if<PullFailure>(&outcome);
  EXPECT_EQ(failure, nullptr) << failure->text;
  static const Pulled none;
  return failure == nullptr ? std::get<Pulled>(outcome) : none;
}

inline PullFailure failure(const PullOutcome& outcome) {
  const auto* const failed = std::get_if<PullFailure>(&outcome);
  EXPECT_NE(failed, nullptr) << "it was pulled";
  return failed != nullptr ? *failed : PullFailure{.how = PullEnd::kOk};
}

}  // namespace monarch::tensor
