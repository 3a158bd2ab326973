// What leaves a plugin, as a host sees it: large bytes where they lie, or all in one for a host of before.

#include <monarch/pieces.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <monarch/actors.hpp>

namespace monarch {
namespace {

constexpr std::size_t kLarge = codec::Writer::kNotedBytes;

struct Camera : Actor {
  const codec::Bytes& last() const { return last_; }
  codec::Bytes taken(const codec::Bytes& photo, std::uint32_t times) {
    last_ = photo;
    return {photo.data + std::to_string(times)};
  }
  std::string named(const std::string& name) { return name; }
  void later(const Reply<codec::Bytes>& reply, const codec::Bytes& photo) { reply.set(photo); }
  codec::Bytes fails() { throw std::runtime_error("no film"); }
  codec::Bytes last_{std::string(kLarge, 'l')};
};

// What a host was given, in its present call.
struct Given {
  std::vector<const void*> large;
  std::string whole;
  std::uint32_t flags = 0;
  bool in_one = false;
};
Given given;
std::string failed;

void look(const monarch_bytes_v1* pieces, std::size_t count) {
  given = {};
  for (std::size_t i = 0; i < count; ++i) {
    if (pieces[i].size >= kLarge) given.large.push_back(pieces[i].data);
    given.whole.append(static_cast<const char*>(pieces[i].data), pieces[i].size);
  }
}

class PiecesTest : public ::testing::Test {
 protected:
  PiecesTest() {
    host_.struct_size = sizeof host_;
    host_.call = [](const monarch_host_v1*, const monarch_call_v1* call) -> std::uint64_t {
      const bool in_one = call->piece_count == 0;
      look(in_one ? &call->arguments : call->pieces, in_one ? 1 : call->piece_count);
      given.in_one = in_one;
      call->on_answer(call->user, nullptr);
      return 1;
    };
    host_.reply = [](monarch_delivery_v1*, monarch_bytes_v1 result) {
      look(&result, 1);
      given.in_one = true;
    };
    host_.reply_with = [](monarch_delivery_v1*, const monarch_reply_v1* result) {
      look(result->pieces, result->piece_count);
      given.flags = result->flags;
    };
    host_.extension = [](const monarch_host_v1*, const char*) -> const void* { return nullptr; };
    host_.fail = [](monarch_delivery_v1*, const char*, const char* text, const char*) { failed = text; };
    detail::known_host() = &host_;
    given = {};
    failed.clear();
  }
  ~PiecesTest() override { detail::known_host() = nullptr; }
  void be_of_before() { host_.struct_size = offsetof(monarch_host_v1, reply_with); }
  template <class... A>
  void run(const char* endpoint, const A&... arguments) {
    const std::string bytes = codec::encode(std::tuple<A...>(arguments...));
    auto* const delivery = reinterpret_cast<monarch_delivery_v1*>(&host_);
    for (std::uint32_t i = 0; i < camera_->endpoint_count; ++i) {
      if (std::string(camera_->endpoints[i].name) != endpoint) continue;
      camera_->endpoints[i].invoke(&actor_, {bytes.data(), bytes.size()}, &host_, delivery);
    }
  }

  monarch_host_v1 host_{};
  const monarch_class_v1* const camera_ =
      MONARCH_ACTOR(Camera, &Camera::last, &Camera::taken, &Camera::named, &Camera::later, &Camera::fails);
  Camera actor_;
  const ActorMesh<Camera> cameras_{"camera", View("work", {{"host", 2}})};
  const codec::Bytes photo_{std::string(kLarge, 'p')};
};

TEST_F(PiecesTest, ArgumentsAreReadWhereTheyLie) {
  (void)cameras_.call<&Camera::taken>(photo_, 7);
  EXPECT_EQ(given.large, std::vector<const void*>{photo_.data.data()});
  EXPECT_EQ(given.whole, codec::encode(std::tuple(photo_, 7)));
  (void)cameras_.call(&Camera::taken, photo_, 8);
  EXPECT_EQ(given.large, std::vector<const void*>{photo_.data.data()});
  cameras_.broadcast<&Camera::taken>(photo_, 9);
  EXPECT_EQ(given.large, std::vector<const void*>{photo_.data.data()});
  const std::vector<std::string> names{std::string(kLarge, 'a'), std::string(kLarge, 'b')};
  (void)cameras_.scatter<&Camera::named>(names);
  EXPECT_EQ(given.large, std::vector<const void*>{names[1].data()});
}

TEST_F(PiecesTest, WhatAnArgumentIsMadeToLivesAsLongAsTheCall) {
  const std::string long_text(kLarge, 'w');
  (void)cameras_.call<&Camera::named>(long_text.c_str());
  EXPECT_EQ(given.whole, codec::encode(std::tuple(long_text)));
  EXPECT_EQ(given.large.size(), 1U);
  EXPECT_NE(given.large[0], long_text.data());
}

TEST_F(PiecesTest, ResultsAreReadWhereTheyLie) {
  run("last");
  EXPECT_EQ(given.large, std::vector<const void*>{actor_.last_.data.data()}) << "an endpoint that gives a reference";
  EXPECT_EQ(given.whole, codec::encode(actor_.last_));
  EXPECT_EQ(given.flags, std::uint32_t{MONARCH_REPLY_HAS_READ});
  run("taken", photo_, std::uint32_t{7});
  EXPECT_EQ(given.whole, codec::encode(codec::Bytes{photo_.data + "7"}));
  EXPECT_EQ(given.large.size(), 1U);
  run("later", photo_);
  EXPECT_EQ(given.whole, codec::encode(photo_));
  EXPECT_EQ(given.large.size(), 1U);
  run("fails");
  EXPECT_EQ(failed, "no film");
}

TEST_F(PiecesTest, AHostOfBeforeGetsThemInOne) {
  be_of_before();
  (void)cameras_.call<&Camera::taken>(photo_, 7);
  EXPECT_TRUE(given.in_one);
  EXPECT_EQ(given.whole, codec::encode(std::tuple(photo_, 7)));
  run("taken", photo_, std::uint32_t{7});
  EXPECT_TRUE(given.in_one);
  EXPECT_EQ(given.whole, codec::encode(codec::Bytes{photo_.data + "7"}));
}

}  // namespace
}  // namespace monarch
