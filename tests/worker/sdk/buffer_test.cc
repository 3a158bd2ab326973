// Buffers, with a host that has memory for them and with one that has none.

#include <monarch/buffer.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <monarch/actors.hpp>
#include <monarch/testing.hpp>

namespace monarch {
namespace {

constexpr std::size_t kLarge = codec::Writer::kNotedBytes;

struct Album : Actor {
  std::uint64_t keep(const Buffer& photo) {
    kept.push_back(photo);
    return photo.size();
  }
  Buffer last() { return kept.empty() ? Buffer() : kept.back(); }
  codec::Bytes as_bytes(const codec::Bytes& bytes) { return bytes; }
  void pairs(const std::vector<std::pair<int, Buffer>>& some) { pair = some; }
  std::vector<Buffer> kept;
  std::vector<std::pair<int, Buffer>> pair;
};

// Memory of the host: how much of it is held, and where some was made.
int held = 0;
std::vector<char> made;
std::string replied;
const void* replied_large = nullptr;

monarch_memory_v1* one_more() {
  ++held;
  return reinterpret_cast<monarch_memory_v1*>(&held);
}

const monarch_buffers_v1 buffers{
    .struct_size = sizeof buffers,
    .reserved = 0,
    .hold_arguments = [](const monarch_host_v1*, monarch_delivery_v1*) { return one_more(); },
    .hold_value = [](const monarch_host_v1*, const monarch_answer_v1*) { return one_more(); },
    .make =
        [](const monarch_host_v1*, std::size_t size, void** data) {
          made.resize(size);
          *data = made.data();
          return one_more();
        },
    .drop = [](monarch_memory_v1*) { --held; }};

class BufferTest : public ::testing::Test {
 protected:
  BufferTest() {
    host_.struct_size = sizeof host_;
    host_.extension = [](const monarch_host_v1*, const char* name) -> const void* {
      return std::string_view(name) == MONARCH_BUFFERS_V1 ? &buffers : nullptr;
    };
    host_.reply_with = [](monarch_delivery_v1*, const monarch_reply_v1* result) {
      replied.clear();
      replied_large = nullptr;
      for (std::size_t i = 0; i < result->piece_count; ++i) {
        const monarch_bytes_v1& piece = result->pieces[i];
        if (piece.size >= kLarge) replied_large = piece.data;
        replied.append(static_cast<const char*>(piece.data), piece.size);
      }
    };
    detail::known_host() = &host_;
    held = 0;
  }
  ~BufferTest() override { detail::known_host() = nullptr; }

  void run(const char* endpoint, const std::string& arguments) {
    auto* const delivery = reinterpret_cast<monarch_delivery_v1*>(&host_);
    for (std::uint32_t i = 0; i < album_->endpoint_count; ++i) {
      if (std::string(album_->endpoints[i].name) != endpoint) continue;
      album_->endpoints[i].invoke(&actor_, {arguments.data(), arguments.size()}, &host_, delivery);
    }
  }

  monarch_host_v1 host_{};
  const monarch_class_v1* const album_ =
      MONARCH_ACTOR(Album, &Album::keep, &Album::last, &Album::as_bytes, &Album::pairs);
  Album actor_;
};

TEST_F(BufferTest, IsBytesToOthers) {
  EXPECT_EQ((signature_of<Buffer, std::tuple<Buffer, int>>()), "yi->y");
  EXPECT_EQ((signature_of<codec::Bytes, std::tuple<std::vector<std::uint8_t>, int>>()), "yi->y");
  const Buffer buffer(std::string(kLarge, 'x'));
  EXPECT_EQ(codec::encode(buffer), codec::encode(codec::Bytes{std::string(kLarge, 'x')}));
  Buffer read;
  codec::DecodeError error;
  ASSERT_TRUE(codec::decode(codec::encode(buffer), read, error)) << error.what;
  EXPECT_EQ(read, buffer) << "a copy, where nobody keeps what it is read from";
  EXPECT_FALSE(codec::decode(codec::encode(std::string("text")), read, error));
}

TEST_F(BufferTest, CopiesAreOfTheSameBytes) {
  const Buffer buffer("abc");
  const Buffer copy = buffer;
  EXPECT_EQ(copy.data(), buffer.data());
  EXPECT_EQ(Buffer().size(), 0U);
  EXPECT_TRUE(Buffer().empty());
  EXPECT_EQ(Buffer("abc"), buffer);
}

TEST_F(BufferTest, AnArgumentIsHeldWhereItLiesAsLongAsItIsKept) {
  const std::string arguments = codec::encode(std::tuple(Buffer(std::string(kLarge, 'p'))));
  run("keep", arguments);
  ASSERT_EQ(actor_.kept.size(), 1U);
  EXPECT_EQ(held, 1);
  const char* const lies = actor_.kept[0].data();
  EXPECT_TRUE(lies > arguments.data() && lies < arguments.data() + arguments.size());
  actor_.kept.push_back(actor_.kept[0]);
  actor_.kept.erase(actor_.kept.begin());
  EXPECT_EQ(held, 1);
  run("last", codec::encode(std::tuple<>()));
  EXPECT_EQ(replied_large, lies) << "nor is it copied as a result";
  actor_.kept.clear();
  EXPECT_EQ(held, 0);
}

TEST_F(BufferTest, AShortArgumentIsCopiedAndBytesAre) {
  run("keep", codec::encode(std::tuple(Buffer(std::string(kLarge - 1, 'p')))));
  EXPECT_EQ(held, 0);
  EXPECT_EQ(actor_.kept.at(0).size(), kLarge - 1);
  run("as_bytes", codec::encode(std::tuple(codec::Bytes{std::string(kLarge, 'p')})));
  EXPECT_EQ(held, 0);
  const std::vector<std::pair<int, Buffer>> some{{1, Buffer(std::string(kLarge, 'a'))},
                                                 {2, Buffer(std::string(kLarge, 'b'))}};
  const std::string sent = codec::encode(std::tuple(some));  // it lies there as long as anybody has it
  run("pairs", sent);
  EXPECT_EQ(actor_.pair, some) << "also within others";
  EXPECT_EQ(held, 2);
}

TEST_F(BufferTest, IsMadeInMemoryOfTheHost) {
  Buffer::Filling filling = Buffer::make(kLarge);
  EXPECT_EQ(filling.data(), made.data());
  EXPECT_EQ(filling.size(), kLarge);
  std::memset(filling.data(), 'f', filling.size());
  Buffer buffer = std::move(filling).done();
  EXPECT_EQ(held, 1);
  EXPECT_EQ(buffer.view(), std::string(kLarge, 'f'));
  buffer = Buffer();
  EXPECT_EQ(held, 0);
}

TEST(BufferWithoutAHost, IsMadeAtAPage) {
  detail::known_host() = nullptr;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kLarge}) {
    Buffer::Filling filling = Buffer::make(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(filling.data()) % 4096, 0U);
    std::memset(filling.data(), 'f', size);
    EXPECT_EQ(std::move(filling).done().view(), std::string(size, 'f'));
  }
}

TEST(BufferInTesting, TravelsAsInAJob) {
  testing::Job job;
  job.mesh("home", {{"host", 1}});
  const auto album = job.actors<Album>("home", "album").at("host", 0);
  Buffer::Filling filling = Buffer::make(kLarge);
  std::memset(filling.data(), 'f', filling.size());
  const Buffer photo = std::move(filling).done();
  EXPECT_EQ(album.call_one(&Album::keep, photo).get(), kLarge);
  EXPECT_EQ(album.call_one(&Album::last).get(), photo);
  EXPECT_EQ(job.actor<Album>("home", "album", 0).kept.at(0), photo);
}

MONARCH_PLUGIN(MONARCH_ACTOR(Album, &Album::keep, &Album::last, &Album::as_bytes, &Album::pairs))

}  // namespace
}  // namespace monarch
