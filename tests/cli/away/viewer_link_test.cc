#include "cli/away/viewer_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "transport/base/clock.h"

namespace monarch {

namespace {

struct Sockets {
  UniqueFd ours;
  UniqueFd theirs;
};

Sockets make_sockets() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {.ours = UniqueFd(ends[0]), .theirs = UniqueFd(ends[1])};
}

struct Side {
  ViewerOutbox outbox;
  std::unique_ptr<ViewerLink> link;
  std::vector<ViewerFrame> heard;
  std::string lost;

  void open(EventLoop& loop, UniqueFd socket) {
    auto opened = ViewerLink::open(loop, std::move(socket), UniqueFd(), outbox,
                                   {.on_frame =
                                        [this](ViewerFrame frame) {
                                          heard.push_back(std::move(frame));
                                          return Status();
                                        },
                                    .on_lost = [this](const Error& why) { lost = why.message; }});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    link = std::move(*opened);
  }
};

void turn_until(EventLoop& loop, const std::function<bool()>& done) {
  const Instant until = boot_now() + Duration::seconds(20);
  const TimerId alarm = loop.at(until, [] {});
  while (!done() && boot_now() < until) loop.run_once();
  loop.cancel(alarm);
  EXPECT_TRUE(done());
}

}  // namespace

TEST(ViewerOutbox, SendsCountedFramesAgainFromWhereTheOtherSideStands) {
  ViewerOutbox outbox;
  const auto all_unsent = [&] {
    std::string all;
    for (auto part = outbox.unsent(); !part.empty(); part = outbox.unsent()) {
      all += part;
      outbox.sent(part.size());
    }
    return all;
  };
  const std::string a = encode_frame(ViewerFrameKind::kOut, "a");
  const std::string b = encode_frame(ViewerFrameKind::kErr, "b");
  outbox.put(ViewerFrameKind::kOut, "a");
  outbox.put(ViewerFrameKind::kErr, "b");
  outbox.put(ViewerFrameKind::kPong);
  EXPECT_EQ(all_unsent(), encode_frame(ViewerFrameKind::kPong) + a + b);
  EXPECT_TRUE(outbox.taken(1).ok());
  outbox.put(ViewerFrameKind::kPong);  // of a connection that is no more
  outbox.start_again();
  EXPECT_EQ(all_unsent(), b);
  EXPECT_FALSE(outbox.done());
  EXPECT_TRUE(outbox.taken(2).ok());
  EXPECT_TRUE(outbox.done());
}

TEST(ViewerOutbox, BelievesNobodyWhoTookMoreThanWasSentOrTakesItBack) {
  ViewerOutbox outbox;
  outbox.put(ViewerFrameKind::kOut, "a");
  EXPECT_FALSE(outbox.taken(1).ok()) << "it is not sent yet";
  outbox.sent(outbox.unsent().size());
  EXPECT_FALSE(outbox.taken(2).ok());
  EXPECT_FALSE(outbox.taken(1ULL << 63U).ok());
  EXPECT_TRUE(outbox.taken(1).ok());
  EXPECT_FALSE(outbox.taken(0).ok());
}

TEST(ViewerOutbox, HoldsWhatIsCountedUntilTheNewConnectionHasSaidWhereItStands) {
  ViewerOutbox outbox;
  outbox.put(ViewerFrameKind::kSignal, "a");
  outbox.sent(outbox.unsent().size());
  outbox.start_again();
  outbox.hold(true);
  outbox.put(ViewerFrameKind::kSignal, "b");
  EXPECT_EQ(outbox.unsent(), "");
  EXPECT_TRUE(outbox.taken(1).ok()) << "the connection before brought it";
  outbox.hold(false);
  EXPECT_EQ(outbox.unsent(), encode_frame(ViewerFrameKind::kSignal, "b"));
}

TEST(ViewerOutbox, IsFullAtAMebibyteThatNobodyHasTaken) {
  ViewerOutbox outbox;
  const std::string piece(64U << 10U, 'x');
  std::size_t count = 0;
  for (; !outbox.full(); ++count) outbox.put(ViewerFrameKind::kOut, piece);
  EXPECT_EQ(count, 16U);
}

TEST(ViewerLink, CarriesFramesBothWays) {
  auto loop = *EventLoop::create();
  Sockets sockets = make_sockets();
  Side here;
  Side there;
  here.open(*loop, std::move(sockets.ours));
  there.open(*loop, std::move(sockets.theirs));
  const std::string large(kViewerPayloadBytes, 'x');
  for (int i = 0; i < 8; ++i) there.outbox.put(ViewerFrameKind::kOut, large);
  there.link->flush();
  here.outbox.put(ViewerFrameKind::kSignal, encode_numbers({15}));
  here.link->flush();
  turn_until(*loop, [&] { return here.heard.size() == 8 && there.heard.size() == 1; });
  EXPECT_EQ(here.heard.back().payload, large);
  EXPECT_EQ(there.heard.front().kind, ViewerFrameKind::kSignal);
}

TEST(ViewerLink, PausedHoldsTheOtherSideAndLosesNothing) {
  auto loop = *EventLoop::create();
  Sockets sockets = make_sockets();
  Side here;
  Side there;
  here.open(*loop, std::move(sockets.ours));
  there.open(*loop, std::move(sockets.theirs));
  here.link->pause();
  const std::string piece(kViewerPayloadBytes, 'x');
  for (int i = 0; i < 16; ++i) there.outbox.put(ViewerFrameKind::kOut, piece);
  there.link->flush();
  loop->turn();
  EXPECT_FALSE(there.outbox.unsent().empty()) << "a socket holds less than 4 MiB";
  EXPECT_TRUE(here.heard.empty());
  here.link->resume();
  turn_until(*loop, [&] { return here.heard.size() == 16; });
}

TEST(ViewerLink, TellsItsEndOnce) {
  auto loop = *EventLoop::create();
  Sockets sockets = make_sockets();
  Side here;
  here.open(*loop, std::move(sockets.ours));
  sockets.theirs.reset();
  turn_until(*loop, [&] { return !here.lost.empty(); });
  EXPECT_EQ(here.lost, "it ended");
  here.lost.clear();
  here.outbox.put(ViewerFrameKind::kPing);
  here.link->flush();
  loop->turn();
  EXPECT_EQ(here.lost, "");
}

TEST(ViewerLink, EndsAtTheFirstWordThatIsNoneOfOurs) {
  auto loop = *EventLoop::create();
  Sockets sockets = make_sockets();
  Side here;
  here.open(*loop, std::move(sockets.ours));
  const std::string said = encode_frame(ViewerFrameKind::kPong) + "Last login: yesterday";
  ASSERT_EQ(::write(sockets.theirs.get(), said.data(), said.size()), static_cast<long>(said.size()));
  turn_until(*loop, [&] { return !here.lost.empty(); });
  EXPECT_EQ(here.lost, "a frame of the unknown kind 76");
  EXPECT_EQ(here.heard.size(), 1U);
}

}  // namespace monarch
