// Bodies in blocks that are written again, by version 3 of the door.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/post/post_talk.h"
#include "transport/wire/memory_pool.h"

namespace monarch::post {
namespace {

constexpr std::size_t kBytes = 200'000;   // by a message between hosts
constexpr std::size_t kMany = 3U << 20U;  // by a connection for bodies, once there is one
constexpr std::size_t kBefore = 100;

class PostBlocks : public PostTest {
 protected:
  void SetUp() override {
    PostTest::SetUp();
    if (HasFatalFailure()) return;
    tell_roster(1);
    caller_ = come(hosts_[0], "control", 0, false, kPostDoorVersion);
  }

  // A call of these ranks with a body in a block of the caller's, behind something else.
  void call_with_block(std::uint64_t id, std::vector<std::uint32_t> ranks, const std::string& content) {
    auto filled = pool_.fill(content.size() + kBefore);
    ASSERT_TRUE(filled.ok());
    std::memcpy(filled->block->start() + kBefore, content.data(), content.size());
    auto lent = pool_.lend_counted(*filled);
    pool_.give_back(std::move(*filled));
    ASSERT_TRUE(lent.ok());
    block_ = lent->block;
    PostCall call = call_of(id, 0, {.bytes = content.size(), .way = BodyWay::kBeside, .here = {}, .from = kBefore});
    call.body.block = block_;
    call.ranks.clear();
    for (const std::uint32_t rank : ranks) call.ranks.push_back({.first = rank, .count = 1, .step = 1});
    std::vector<UniqueFd> beside;
    beside.push_back(std::move(lent->memory));
    say(caller_, call, std::move(beside));
  }

  struct Given {
    PostDeliver deliver;
    UniqueFd memory;
    std::shared_ptr<const MappedMemory> mapped;
    std::string_view content() const {
      return mapped == nullptr ? std::string_view() : mapped->bytes().substr(deliver.body.from, deliver.body.bytes);
    }
  };
  static Given given_to(const UniqueFd& rank) {
    auto heard = hear<PostDeliver>(rank);
    EXPECT_TRUE(heard.has_value() && heard->second.size() == 1);
    if (!heard || heard->second.size() != 1) return {};
    const CallBody& body = heard->first.body;
    auto mapped = MappedMemory::map(heard->second[0].get(), body.from + body.bytes);
    EXPECT_TRUE(mapped.ok());
    if (!mapped.ok()) return {};
    return {std::move(heard->first), std::move(heard->second[0]), std::move(*mapped)};
  }
  static void answer(const UniqueFd& rank, const Given& given, bool keeps) {
    say(rank, PostReply{.delivery = given.deliver.delivery, .outcome = {}, .keeps = keeps});
  }

  // Whatever answers come before it.
  std::optional<PostFree> hear_free() {
    for (;;) {
      if (!becomes_readable(caller_.get())) return std::nullopt;
      auto received = receive_message(caller_.get(), limits::kSeqpacketPayloadBytes);
      if (!received.ok() || !received->has_value()) return std::nullopt;
      const Frame& frame = (*received)->frame;
      if (is_a<PostFree>(frame.header)) return *decode_payload<PostFree>(frame.payload);
      EXPECT_TRUE(is_a<PostAnswers>(frame.header)) << frame.header.type;
    }
  }

  static ino_t which(const UniqueFd& memory) {
    struct stat status {};
    EXPECT_EQ(::fstat(memory.get(), &status), 0);
    return status.st_ino;
  }

  MemoryPool pool_;
  UniqueFd caller_;
  std::uint64_t block_ = 0;  // that was lent last
};

TEST_F(PostBlocks, WritesAgainWhatIsReadNoMoreOnBothHosts) {
  ASSERT_FALSE(HasFatalFailure());
  const UniqueFd near = come(hosts_[0], "work", 0, true, kPostDoorVersion);
  const UniqueFd far = come(hosts_[1], "work", 1, true, kPostDoorVersion);
  std::uint64_t id = 0;
  for (const std::size_t bytes : {kBytes, kMany, kMany}) {
    // What is kept of the first stays as it is, whatever the others write.
    const std::string first(bytes, static_cast<char>('a' + id));
    ASSERT_NO_FATAL_FAILURE(call_with_block(++id, {0, 1}, first));
    const std::uint64_t lent = block_;
    const Given here = given_to(near);
    EXPECT_EQ(here.deliver.body.from, kBefore);
    EXPECT_EQ(here.deliver.body.block, lent) << "the lender's own number";
    EXPECT_TRUE(here.content() == first);
    const Given there = given_to(far);
    EXPECT_EQ(there.deliver.body.from, 0U);
    EXPECT_GT(there.deliver.body.block, 0U);
    EXPECT_TRUE(there.content() == first);
    answer(near, here, false);
    answer(far, there, true);
    EXPECT_EQ(hear_free(), (PostFree{lent, false}));
    pool_.free(lent);
    const std::string second(bytes, static_cast<char>('p' + id));
    ASSERT_NO_FATAL_FAILURE(call_with_block(++id, {1}, second));
    EXPECT_EQ(block_, lent) << "the same block again";
    EXPECT_TRUE(here.content() == second) << "who has let it go sees what is written";
    const Given other = given_to(far);
    EXPECT_TRUE(other.content() == second && there.content() == first);
    EXPECT_NE(which(other.memory), which(there.memory));
    answer(far, other, false);
    EXPECT_EQ(hear_free(), (PostFree{lent, false}));
    pool_.free(lent);
    say(far, PostLetGo{.delivery = there.deliver.delivery});
    // By the same connection as the word before it.
    ASSERT_NO_FATAL_FAILURE(call_with_block(++id, {1}, first));
    const Given again = given_to(far);
    EXPECT_TRUE(which(again.memory) == which(there.memory) || which(again.memory) == which(other.memory));
    answer(far, again, false);
    EXPECT_EQ(hear_free(), (PostFree{lent, false}));
    pool_.free(lent);
  }
}

TEST_F(PostBlocks, CopiesForAReaderWhoKnowsNoBeginnings) {
  ASSERT_FALSE(HasFatalFailure());
  const UniqueFd rank = come(hosts_[0], "work", 0, true, kOldestPostDoorVersion);
  const std::string content(kBytes, 'x');
  ASSERT_NO_FATAL_FAILURE(call_with_block(1, {0}, content));
  const Given given = given_to(rank);
  EXPECT_EQ(given.deliver.body.from, 0U);
  EXPECT_EQ(given.deliver.body.block, 0U);
  EXPECT_TRUE(given.content() == content);
  answer(rank, given, false);
  EXPECT_EQ(hear_free(), (PostFree{block_, true}));
}

TEST_F(PostBlocks, IsNotSureOfABlockWhoseReaderHasLeft) {
  ASSERT_FALSE(HasFatalFailure());
  UniqueFd rank = come(hosts_[0], "work", 0, true, kPostDoorVersion);
  const std::string content(kBytes, 'x');
  ASSERT_NO_FATAL_FAILURE(call_with_block(1, {0}, content));
  const Given given = given_to(rank);
  answer(rank, given, true);
  rank.reset();
  EXPECT_EQ(hear_free(), (PostFree{block_, true}));
  pool_.free(block_, MemoryPool::Word::kUnsure);
  const std::uint64_t before = block_;
  ASSERT_NO_FATAL_FAILURE(call_with_block(2, {9}, std::string(kBytes, 'y')));
  EXPECT_NE(block_, before);
  EXPECT_TRUE(given.content() == content) << "its process lives";
}

TEST_F(PostBlocks, RefusesABodyThatDoesNotBeginInItsMemory) {
  ASSERT_FALSE(HasFatalFailure());
  for (const auto& [from, bytes] : {std::pair<std::uint64_t, std::uint64_t>{1, 65'536},
                                    {~std::uint64_t{0}, 2},
                                    {65'537, 10},
                                    {65'536, ~std::uint64_t{0}}}) {
    const UniqueFd caller = come(hosts_[0], "control", 0, false, kPostDoorVersion);
    auto lent = pool_.lend_counted(std::string(65'536, 'x'));
    PostCall call = call_of(1, 0, {.bytes = bytes, .way = BodyWay::kBeside, .here = {}, .from = from});
    std::vector<UniqueFd> beside;
    beside.push_back(std::move(lent->memory));
    say(caller, call, std::move(beside));
    EXPECT_TRUE(hear<PostClosed>(caller).has_value()) << from << ' ' << bytes;
  }
}

}  // namespace
}  // namespace monarch::post
