// A plugin of today in a host of before: its table ends where that of then did, it has no extension, and it knows
// neither pieces nor threads that read. Calls go through it from one end to the other, and its answers come on threads
// of its own.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <monarch/actors.hpp>
#include <monarch/buffer.hpp>

struct monarch_delivery_v1 {
  bool is_value = false;
  std::string answer;  // the value, or what was said of a failure
};

namespace monarch {
namespace {

struct Archive : Actor {
  Buffer echo(const Buffer& buffer) { return buffer; }
  codec::Bytes copy(const codec::Bytes& bytes) { return bytes; }
  std::uint64_t keep(const Buffer& buffer) {
    const std::lock_guard lock(mutex);
    kept.push_back(buffer);
    return kept.size();
  }
  void refuse(const Buffer& /*buffer*/) { throw std::runtime_error("it is full"); }
  std::mutex mutex;
  std::vector<Buffer> kept;
};

class OlderHost : public ::testing::Test {
 protected:
  static constexpr std::size_t kTableBytes = offsetof(monarch_host_v1, reply_with);
  static constexpr std::size_t kPage = 4096;

  // What lies behind the table cannot be read.
  OlderHost() : pages_(::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(pages_, MAP_FAILED);
    char* const start = static_cast<char*>(pages_) + kPage - kTableBytes;
    EXPECT_EQ(::mprotect(static_cast<char*>(pages_) + kPage, kPage, PROT_NONE), 0);
    monarch_host_v1 table{};
    table.struct_size = kTableBytes;
    table.runtime = this;
    table.call = [](const monarch_host_v1* host, const monarch_call_v1* call) {
      return static_cast<OlderHost*>(host->runtime)->call(*call);
    };
    table.cancel = [](const monarch_host_v1*, std::uint64_t) {};
    table.extension = [](const monarch_host_v1*, const char*) -> const void* { return nullptr; };
    table.reply = [](monarch_delivery_v1* delivery, monarch_bytes_v1 result) {
      delivery->is_value = true;
      delivery->answer.assign(static_cast<const char*>(result.data), result.size);
    };
    table.fail = [](monarch_delivery_v1* delivery, const char*, const char* text, const char*) {
      delivery->answer = text;
    };
    std::memcpy(start, &table, kTableBytes);
    host_ = reinterpret_cast<const monarch_host_v1*>(start);
    detail::known_host() = host_;
  }
  ~OlderHost() override {
    for (std::thread& thread : threads_) thread.join();
    detail::known_host() = nullptr;
    EXPECT_EQ(::munmap(pages_, 2 * kPage), 0);
  }

  // Each call is answered by a thread of its own.
  std::uint64_t call(const monarch_call_v1& asked) {
    EXPECT_EQ(asked.piece_count, 0U);
    EXPECT_EQ(asked.flags & MONARCH_CALL_ANY_THREAD, 0U);
    std::uint32_t ranks = 0;
    for (std::size_t i = 0; i < asked.ranks_count; ++i) ranks += asked.ranks[i].count;
    threads_.emplace_back([this, ranks, endpoint = std::string(asked.endpoint), on_answer = asked.on_answer,
                           user = asked.user,
                           bytes = std::string(static_cast<const char*>(asked.arguments.data), asked.arguments.size)] {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) answer(rank, endpoint, bytes, on_answer, user);
      on_answer(user, nullptr);
    });
    return threads_.size();
  }

  const monarch_host_v1* host_ = nullptr;
  Archive archive_;
  const ActorMesh<Archive> archives_{"archive", View("work", {{"host", 2}})};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> errors_;

 private:
  using OnAnswer = void (*)(void* user, const monarch_answer_v1* answer);

  // The arguments are gone when the endpoint has returned.
  void answer(std::uint32_t rank, const std::string& endpoint, std::string arguments, OnAnswer on_answer, void* user) {
    monarch_delivery_v1 delivery;
    for (std::uint32_t i = 0; i < class_->endpoint_count; ++i) {
      if (endpoint != class_->endpoints[i].name) continue;
      class_->endpoints[i].invoke(&archive_, {arguments.data(), arguments.size()}, host_, &delivery);
    }
    std::fill(arguments.begin(), arguments.end(), '\0');
    const monarch_answer_v1 said{
        .struct_size = sizeof said,
        .kind = delivery.is_value ? std::uint32_t{MONARCH_VALUE} : std::uint32_t{MONARCH_REMOTE_ERROR},
        .rank = rank,
        .reserved = 0,
        .generation = 1,
        .value = {delivery.answer.data(), delivery.is_value ? delivery.answer.size() : 0},
        .type = "",
        .text = delivery.is_value ? "" : delivery.answer.c_str(),
        .traceback = ""};
    on_answer(user, &said);
  }

  void* const pages_;
  const monarch_class_v1* const class_ =
      MONARCH_ACTOR(Archive, &Archive::echo, &Archive::copy, &Archive::keep, &Archive::refuse);
  std::vector<std::thread> threads_;
};

const std::vector<std::size_t> kByteSizes{0, 1, 100, 16'383, 16'384, 49'152, 1U << 20U};

std::string some_bytes(std::size_t size, std::size_t number) {
  std::string bytes(size, static_cast<char>('a' + number % 26));
  for (std::size_t at = 0; at < size; at += 61) bytes[at] = static_cast<char>(at / 61 + number);
  return bytes;
}

Buffer filled(const std::string& bytes) {
  Buffer::Filling filling = Buffer::make(bytes.size());
  if (!bytes.empty()) std::memcpy(filling.data(), bytes.data(), bytes.size());
  return std::move(filling).done();
}

TEST_F(OlderHost, CarriesSmallAndLargeBytesOneAfterTheOther) {
  for (const std::size_t size : kByteSizes) {
    const std::string bytes = some_bytes(size, size);
    for (const Buffer& sent : {Buffer(bytes), filled(bytes)}) {
      const auto back = archives_.call<&Archive::echo>(sent).get();
      ASSERT_EQ(back.size(), 2U);
      for (const auto& [rank, value] : back) EXPECT_TRUE(value.view() == bytes) << size;
    }
    for (const auto& [rank, value] : archives_.call<&Archive::copy>(codec::Bytes{bytes}).get()) {
      EXPECT_TRUE(value.data == bytes) << size;
    }
  }
}

TEST_F(OlderHost, CarriesThemAllAtOnce) {
  using Sent = decltype(archives_.call<&Archive::echo>(Buffer()));
  std::vector<std::pair<std::string, Sent>> all;
  for (std::size_t i = 0; i < 4 * kByteSizes.size(); ++i) {
    const std::string bytes = some_bytes(kByteSizes[i / 4], i);
    all.emplace_back(bytes, archives_.call<&Archive::echo>(filled(bytes)));
  }
  for (const auto& [bytes, future] : all) {
    for (const auto& [rank, value] : future.get()) EXPECT_TRUE(value.view() == bytes) << bytes.size();
  }
}

TEST_F(OlderHost, HasWhatIsKeptCopied) {
  const std::string bytes = some_bytes(1U << 20U, 7);
  EXPECT_EQ(archives_.call<&Archive::keep>(Buffer(bytes)).get().size(), 2U);
  ASSERT_EQ(archive_.kept.size(), 2U);
  for (const Buffer& kept : archive_.kept) EXPECT_TRUE(kept.view() == bytes);
}

TEST_F(OlderHost, TellsErrorsAndRunsWhatFollows) {
  archives_.at("host", 0).call<&Archive::refuse>(Buffer(some_bytes(1U << 16U, 1))).then([this](const auto& ended) {
    const std::lock_guard lock(mutex_);
    for (const auto& outcome : ended.collect()) errors_.push_back(outcome.text);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !errors_.empty(); });
  EXPECT_EQ(errors_, std::vector<std::string>{"it is full"});
}

}  // namespace
}  // namespace monarch
