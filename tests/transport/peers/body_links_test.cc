// Two processes' connections for bodies in one loop; what leads to one is carried by the test.

#include "transport/peers/body_links.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "transport/base/clock.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {
namespace {

constexpr std::uint64_t kMost = 64U << 20U;

std::shared_ptr<const MappedMemory> body_of(const std::string& bytes) {
  return MappedMemory::map(make_sealed_memory("body", bytes).value().get(), bytes.size()).value();
}

std::string pattern(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + (i >> 8U) * 7 + seed);
  return bytes;
}

std::string read(const BodyStream::Arrived& arrived) {
  return std::string(MappedMemory::map(arrived.memory.get(), arrived.bytes).value()->bytes());
}

// ---- A connection.

class BodyStreamTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !BodyCipher::has_aes()) GTEST_SKIP() << "this processor has no AES";
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_.data()), 0);
  }
  std::unique_ptr<BodyStream> end(int which, char secret = 's') {
    const auto at = static_cast<std::size_t>(which);
    return std::make_unique<BodyStream>(UniqueFd(ends_[at]), pool_,
                                        BodyStream::Options{.secret = std::string(kBodySecretBytes, secret),
                                                            .dials = which == 0,
                                                            .with_aes = GetParam(),
                                                            .most = kMost});
  }

  MemoryPool pool_;
  std::array<int, 2> ends_{};
};

INSTANTIATE_TEST_SUITE_P(Ciphers, BodyStreamTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "aes" : "chacha"; });

TEST_P(BodyStreamTest, CarriesBodiesInTheirOrder) {
  const auto one = end(0);
  const auto other = end(1);
  const std::vector<std::size_t> sizes{1, 256U << 10U, (256U << 10U) + 1, 3U << 20U};
  for (std::size_t i = 0; i < sizes.size(); ++i) one->send(i + 1, body_of(pattern(sizes[i], static_cast<unsigned>(i))));
  std::size_t next = 0;
  while (next < sizes.size()) {
    ASSERT_TRUE(one->flush(100'000).ok());
    auto arrived = other->receive(70'000);
    ASSERT_TRUE(arrived.ok()) << arrived.error().message;
    for (const BodyStream::Arrived& body : *arrived) {
      EXPECT_EQ(body.number, next + 1);
      EXPECT_EQ(read(body), pattern(sizes[next], static_cast<unsigned>(next)));
      ++next;
    }
  }
  EXPECT_TRUE(other->is_proven());
  EXPECT_FALSE(one->wants_to_write());
}

TEST_P(BodyStreamTest, BelievesNobodyWithAnotherSecret) {
  const auto one = end(0, 's');
  const auto other = end(1, 't');
  one->send(1, body_of(pattern(1'000, 1)));
  ASSERT_TRUE(one->flush(1U << 20U).ok());
  EXPECT_EQ(other->receive(1U << 20U).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(other->is_proven());
}

// A byte that is changed, a piece that is said again or left out: each is none of the other side's.
TEST_P(BodyStreamTest, BelievesNothingThatWasChangedOnItsWay) {
  const auto one = end(0);
  one->send(1, body_of(pattern(600'000, 1)));
  std::string said;
  while (one->wants_to_write()) {
    ASSERT_TRUE(one->flush(1U << 20U).ok());
    std::array<char, 65'536> some{};
    for (ssize_t got = 0; (got = ::recv(ends_[1], some.data(), some.size(), MSG_DONTWAIT)) > 0;) {
      said.append(some.data(), static_cast<std::size_t>(got));
    }
  }
  EXPECT_EQ(said.find(pattern(600'000, 1).substr(1'000, 32)), std::string::npos) << "in the clear";
  const auto heard = [&](const std::string& words) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    const UniqueFd writes(ends[0]);
    BodyStream reads(
        UniqueFd(ends[1]), pool_,
        {.secret = std::string(kBodySecretBytes, 's'), .dials = false, .with_aes = GetParam(), .most = kMost});
    std::size_t bodies = 0;
    for (std::size_t at = 0; at < words.size(); at += 50'000) {
      const std::string piece = words.substr(at, 50'000);
      EXPECT_EQ(::send(writes.get(), piece.data(), piece.size(), 0), static_cast<ssize_t>(piece.size()));
      const auto arrived = reads.receive(1U << 20U);
      if (!arrived.ok()) return arrived.error().code == ErrorCode::kInvalid && bodies == 0;
      bodies += arrived->size();
    }
    return bodies == 0;
  };
  EXPECT_FALSE(heard(said)) << "unchanged it arrives";
  constexpr std::size_t kHello = 8 + 16;
  for (const std::size_t at :
       {std::size_t{3}, std::size_t{9}, kHello + 4, kHello + 20, said.size() / 2, said.size() - 1}) {
    std::string changed = said;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_TRUE(heard(changed)) << at;
  }
  EXPECT_TRUE(heard(said.substr(kHello))) << "without its hello";
  EXPECT_TRUE(heard(said.substr(0, kHello) + said)) << "its hello twice";
  const std::size_t first = kHello + 8 + 16 + 16;
  const std::size_t piece = 8 + BodyStream::kPieceBytes + 16;
  EXPECT_TRUE(heard(said.substr(0, first) + said.substr(first + piece, piece) + said.substr(first, piece) +
                    said.substr(first + 2 * piece)))
      << "two pieces in each other's place";
}

// Each body in its order, whole, and in no memory of the pool.
TEST_P(BodyStreamTest, HandsOverPartsAsTheyCome) {
  const auto one = end(0);
  std::string here;
  BodyStream other(UniqueFd(ends_[1]), pool_,
                   {.secret = std::string(kBodySecretBytes, 's'),
                    .dials = false,
                    .with_aes = GetParam(),
                    .most = kMost,
                    .on_part = [&](const BodyStream::Part& part) {
                      if (part.at == 0) here.clear();
                      EXPECT_EQ(part.at, here.size());
                      EXPECT_EQ(part.bytes, part.number * 300'000);
                      here += part.here;
                    }});
  for (std::uint64_t number = 1; number <= 3; ++number) {
    one->send(number, body_of(pattern(number * 300'000, static_cast<unsigned>(number))));
  }
  std::uint64_t next = 1;
  while (next <= 3) {
    ASSERT_TRUE(one->flush(100'000).ok());
    auto arrived = other.receive(70'000);
    ASSERT_TRUE(arrived.ok()) << arrived.error().message;
    for (const BodyStream::Arrived& body : *arrived) {
      EXPECT_EQ(body.number, next);
      EXPECT_FALSE(body.memory.valid());
      EXPECT_TRUE(here == pattern(next * 300'000, static_cast<unsigned>(next)));
      ++next;
    }
  }
  EXPECT_EQ(pool_.bytes(), 0U);
}

TEST_P(BodyStreamTest, RefusesABodyThatIsTooLarge) {
  const auto one = end(0);
  BodyStream other(UniqueFd(ends_[1]), pool_,
                   {.secret = std::string(kBodySecretBytes, 's'), .dials = false, .with_aes = GetParam(), .most = 999});
  one->send(1, body_of(pattern(1'000, 1)));
  ASSERT_TRUE(one->flush(1U << 20U).ok());
  EXPECT_EQ(other.receive(1U << 20U).error().message, "a body of 1000 bytes");
}

// ---- Those between two hosts.

class BodyLinksTest : public ::testing::Test {
 protected:
  struct End {
    std::unique_ptr<BodyLinks> links;
    std::vector<std::pair<std::uint64_t, std::string>> bodies;
    int lost = 0;
  };

  void SetUp() override {
    loop_ = EventLoop::create().value();
    loop_->read_clock();
    for (std::uint32_t host = 0; host < 2; ++host) make(host, {});
  }
  void TearDown() override {
    for (End& end : ends_) end.links.reset();
  }
  void make(std::uint32_t host, std::optional<bool> with_aes) {
    End& end = ends_[host];
    BodyLinks::Options options{.address = "127.0.0.1", .most = kMost};
    if (with_aes) options.with_aes = *with_aes;
    BodyLinks::Handlers handlers{
        .on_body = [&end](HostId, PeerVia,
                          BodyStream::Arrived&& body) { end.bodies.emplace_back(body.number, read(body)); },
        .on_lost = [&end](HostId, PeerVia) { ++end.lost; },
        .say =
            [this, host](HostId, PeerVia via, const BodyLinkWord& word) {
              const PeerVia back = via == PeerVia::kOurs ? PeerVia::kTheirs : PeerVia::kOurs;
              loop_->defer([this, host, back, word] {
                if (carries_words) ends_[1 - host].links->heard(HostId(host), back, word);
              });
            },
        .address_of = [](HostId) { return std::string("127.0.0.1"); }};
    end.links = std::make_unique<BodyLinks>(*loop_, pools_[host], options, std::move(handlers));
  }
  // Host 0 has dialled host 1.
  static PeerVia via(std::uint32_t host) { return host == 0 ? PeerVia::kOurs : PeerVia::kTheirs; }
  std::optional<std::uint64_t> link(std::uint32_t host) {
    return ends_[host].links->link_to(HostId(1 - host), via(host));
  }
  // Made anew; what it says goes nowhere else.
  BodyLinkWord offer_of_the_second() {
    BodyLinks::Handlers handlers{.on_body = [](HostId, PeerVia, BodyStream::Arrived&&) {},
                                 .on_lost = [](HostId, PeerVia) {},
                                 .say = [this](HostId, PeerVia, const BodyLinkWord& word) { offered_ = word; },
                                 .address_of = [](HostId) { return std::string(); }};
    ends_[1].links = std::make_unique<BodyLinks>(*loop_, pools_[1],
                                                 BodyLinks::Options{.address = "127.0.0.1", .most = kMost}, handlers);
    EXPECT_FALSE(link(1).has_value());
    EXPECT_NE(offered_.port, 0);
    return offered_;
  }
  void send(std::uint32_t host, const std::string& bytes) {
    ends_[host].links->send(HostId(1 - host), via(host), body_of(bytes));
  }
  template <class Done>
  bool until(const Done& done) {
    const Instant end = boot_now() + Duration::seconds(10);
    while (!done() && boot_now() < end) {
      pollfd waiting{loop_->descriptor(), POLLIN, 0};
      const Instant due = std::min(loop_->next_due(), boot_now() + Duration::milliseconds(20));
      (void)::poll(&waiting, 1, EventLoop::wait_milliseconds(boot_now(), due));
      loop_->turn();
    }
    return done();
  }

  bool carries_words = true;
  BodyLinkWord offered_;
  std::unique_ptr<EventLoop> loop_;
  std::array<MemoryPool, 2> pools_;
  std::array<End, 2> ends_;
};

TEST_F(BodyLinksTest, CarryBodiesBothWaysOnceOneIsThere) {
  EXPECT_FALSE(link(0).has_value()) << "the first goes the other way";
  ASSERT_TRUE(until([&] { return link(0).has_value() && link(1).has_value(); }));
  EXPECT_EQ(link(0), link(1));
  const std::string large = pattern(5U << 20U, 3);
  for (int i = 0; i < 3; ++i) {
    send(0, large);
    send(1, pattern(300'000, static_cast<unsigned>(i)));
  }
  ASSERT_TRUE(until([&] { return ends_[0].bodies.size() == 3 && ends_[1].bodies.size() == 3; }));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ends_[1].bodies[i].first, i + 1);
    EXPECT_TRUE(ends_[1].bodies[i].second == large);
    EXPECT_TRUE(ends_[0].bodies[i].second == pattern(300'000, static_cast<unsigned>(i)));
  }
  EXPECT_TRUE(ends_[1].links->comes_by(HostId(0), PeerVia::kTheirs, *link(0)));
  EXPECT_FALSE(ends_[1].links->comes_by(HostId(0), PeerVia::kTheirs, *link(0) + 1));
}

TEST_F(BodyLinksTest, AreOpenedByWhoWasDialledToo) {
  EXPECT_FALSE(link(1).has_value());
  ASSERT_TRUE(until([&] { return link(1).has_value(); }));
}

TEST_F(BodyLinksTest, GoWithoutAesWhereOneHasNone) {
  for (const std::uint32_t without : {0U, 1U}) {
    make(without, false);
    for (const std::uint32_t first : {0U, 1U}) {
      EXPECT_FALSE(link(first).has_value());
      ASSERT_TRUE(until([&] { return link(0).has_value() && link(1).has_value(); })) << without << first;
      ends_[1].bodies.clear();
      send(0, pattern(300'000, 1));
      ASSERT_TRUE(until([&] { return ends_[1].bodies.size() == 1; }));
      ends_[0].links->drop(HostId(1), PeerVia::kOurs);
      ASSERT_TRUE(
          until([&] { return !ends_[1].links->comes_by(HostId(0), PeerVia::kTheirs, 0) && ends_[1].lost > 0; }));
      make(0, without == 0 ? std::optional(false) : std::nullopt);
      make(1, without == 1 ? std::optional(false) : std::nullopt);
      ends_[1].lost = 0;
    }
  }
}

TEST_F(BodyLinksTest, TakeNoMoreThanTheyHaveRoomFor) {
  EXPECT_FALSE(link(0).has_value());
  ASSERT_TRUE(until([&] { return link(0).has_value() && link(1).has_value(); }));
  const auto body = body_of(pattern(8U << 20U, 1));
  std::size_t sent = 0;
  for (; sent < 100 && link(0).has_value(); ++sent) ends_[0].links->send(HostId(1), via(0), body);
  EXPECT_EQ(sent, BodyLinks::kQueueBytes / (8U << 20U) + 1);
  ends_[0].links->drop(HostId(1), PeerVia::kOurs);
}

// Both hear it, and the next large body opens another.
TEST_F(BodyLinksTest, TellBothThatOneWasLost) {
  EXPECT_FALSE(link(0).has_value());
  ASSERT_TRUE(until([&] { return link(0).has_value() && link(1).has_value(); }));
  const std::uint64_t first = *link(0);
  send(0, pattern(32U << 20U, 1));
  loop_->turn();
  ends_[1].links->drop(HostId(0), PeerVia::kTheirs);
  ASSERT_TRUE(until([&] { return ends_[0].lost == 1 && ends_[1].lost == 1; }));
  EXPECT_TRUE(ends_[1].bodies.empty());
  EXPECT_FALSE(ends_[1].links->comes_by(HostId(0), PeerVia::kTheirs, first));
  ASSERT_TRUE(until([&] { return link(0).has_value() && link(1).has_value(); }));
  EXPECT_NE(*link(0), first);
  send(0, pattern(300'000, 2));
  ASSERT_TRUE(until([&] { return ends_[1].bodies.size() == 1; }));
}

// Who waits while descriptors are short does not keep the loop awake.
TEST_F(BodyLinksTest, WaitWhileDescriptorsAreShort) {
  EXPECT_FALSE(link(0).has_value());
  ASSERT_TRUE(until([&] { return link(0).has_value() && link(1).has_value(); }));
  ends_[0].links->drop(HostId(1), PeerVia::kOurs);
  ASSERT_TRUE(until([&] { return ends_[1].lost == 1; }));
  std::uint16_t port = 0;
  BodyLinks::Handlers handlers{.on_body = [](HostId, PeerVia, BodyStream::Arrived&&) {},
                               .on_lost = [](HostId, PeerVia) {},
                               .say = [&](HostId, PeerVia, const BodyLinkWord& word) { port = word.port; },
                               .address_of = [](HostId) { return std::string(); }};
  ends_[1].links = std::make_unique<BodyLinks>(*loop_, pools_[1],
                                               BodyLinks::Options{.address = "127.0.0.1", .most = kMost}, handlers);
  EXPECT_FALSE(link(1).has_value());
  const UniqueFd waits = connect_to_host("127.0.0.1", port).value();
  const int next = ::dup(waits.get());
  ASSERT_GE(next, 0);
  ASSERT_EQ(::close(next), 0);
  int turns = 0;
  {
    const LowerLimit files(RLIMIT_NOFILE, static_cast<rlim_t>(next));
    const Instant end = boot_now() + Duration::milliseconds(200);
    (void)until([&] { return ++turns > 1'000 || boot_now() >= end; });
  }
  EXPECT_LT(turns, 100);
}

// Who comes has the place of the one that has been silent longest.
TEST_F(BodyLinksTest, HaveAPlaceBehindSilentStrangers) {
  const BodyLinkWord offered = offer_of_the_second();
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < BodyLinks::kStrangers + 4; ++i) {
    silent.push_back(connect_to_host("127.0.0.1", offered.port).value());
    ASSERT_TRUE(until([&] { return connected(silent.back()).value(); }));
  }
  const UniqueFd honest = connect_to_host("127.0.0.1", offered.port).value();
  ASSERT_TRUE(until([&] { return connected(honest).value(); }));
  ASSERT_EQ(::send(honest.get(), offered.name.data.data(), offered.name.data.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(offered.name.data.size()));
  ssize_t got = -1;
  std::array<char, 64> said{};
  ASSERT_TRUE(until([&] {
    if (got < 0) got = ::recv(honest.get(), said.data(), said.size(), MSG_DONTWAIT);
    return got >= 0;
  }));
  EXPECT_GT(got, 0) << "it hears a hello";
}

TEST_F(BodyLinksTest, LetNobodyInWhileTheyRest) {
  const BodyLinkWord offered = offer_of_the_second();
  const UniqueFd silent = connect_to_host("127.0.0.1", offered.port).value();
  ASSERT_TRUE(until([&] { return connected(silent).value(); }));
  ends_[1].links->rest(true);
  std::array<char, 64> said{};
  const auto has_ended = [&](const UniqueFd& socket) {
    const ssize_t got = ::recv(socket.get(), said.data(), said.size(), MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  };
  const UniqueFd late = connect_to_host("127.0.0.1", offered.port).value();
  ASSERT_EQ(::send(late.get(), "0123456789abcdef", 16, MSG_NOSIGNAL | MSG_DONTWAIT), 16);
  const Instant end = boot_now() + Duration::milliseconds(50);
  (void)until([&] { return boot_now() >= end; });
  EXPECT_FALSE(has_ended(late)) << "it waits";
  ends_[1].links->rest(false);
  ASSERT_TRUE(until([&] { return has_ended(late); })) << "it took no offer";
}

TEST_F(BodyLinksTest, AreNotForStrangers) {
  const BodyLinkWord offered = offer_of_the_second();
  const UniqueFd junk = connect_to_host("127.0.0.1", offered.port).value();
  const UniqueFd thief = connect_to_host("127.0.0.1", offered.port).value();
  ASSERT_TRUE(until([&] { return connected(junk).value() && connected(thief).value(); }));
  ASSERT_EQ(::send(junk.get(), "0123456789abcdef", 16, MSG_NOSIGNAL), 16);
  const std::string name = offered.name.data + std::string(24, 'x');  // who has seen the name has not the secret
  ASSERT_EQ(::send(thief.get(), name.data(), name.size(), MSG_NOSIGNAL), static_cast<ssize_t>(name.size()));
  for (const UniqueFd* const end : {&junk, &thief}) {
    std::array<char, 64> said{};
    ASSERT_TRUE(until([&] {
      const ssize_t got = ::recv(end->get(), said.data(), said.size(), MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
  }
  EXPECT_FALSE(link(1).has_value());
}

}  // namespace
}  // namespace monarch
