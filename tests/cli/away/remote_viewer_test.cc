#include "cli/away/remote_viewer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <functional>

#include "transport/base/clock.h"

namespace monarch {

namespace {

// The machine at the other end, as a test writes it: each connection gets the next of these, which answers frame by
// frame.
struct OtherHalf {
  std::unique_ptr<ViewerLink> link;
  ViewerOutbox outbox;
  std::vector<ViewerFrame> heard;
  UniqueFd raw;      // instead of a link
  bool cut = false;  // set by an act: the connection ends
};
using Act = std::function<void(OtherHalf&, const ViewerFrame&)>;

class FakeDoor final : public ViewerDoor {
 public:
  explicit FakeDoor(EventLoop& loop) : loop_(loop) {}

  // The next connection; without an act it fails.
  void then(Act act) { acts_.push_back(std::move(act)); }
  // The next connection says just these bytes.
  void then_says(std::string bytes) { says_.push_back(std::move(bytes)); }

  void open(Handlers handlers) override {
    ++opened;
    if (acts_.empty() && says_.empty()) {
      loop_.defer([handlers] {
        handlers.on_failed({.message = "h1: refused", .help = "", .exit_code = 69, .worth_retrying = true});
      });
      return;
    }
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    other_.push_back(std::make_unique<OtherHalf>());
    OtherHalf* half = other_.back().get();
    if (!says_.empty()) {
      half->raw = UniqueFd(ends[1]);
      const std::string bytes = says_.front();
      says_.pop_front();
      ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<long>(bytes.size()));
    } else {
      auto link = ViewerLink::open(loop_, UniqueFd(ends[1]), UniqueFd(), half->outbox,
                                   {.on_frame =
                                        [this, half, act = acts_.front()](ViewerFrame frame) {
                                          half->heard.push_back(frame);
                                          act(*half, frame);
                                          half->link->flush();
                                          if (half->cut) loop_.defer([half] { half->link.reset(); });
                                          return Status();
                                        },
                                    .on_lost = [](const Error&) {}});
      acts_.pop_front();
      ASSERT_TRUE(link.ok());
      half->link = std::move(*link);
    }
    loop_.defer([handlers, fd = ends[0]] { handlers.on_open(UniqueFd(fd)); });
  }
  void close() override {}
  std::string last_words() const override { return ""; }

  std::vector<std::unique_ptr<OtherHalf>> other_;
  int opened = 0;

 private:
  EventLoop& loop_;
  std::deque<Act> acts_;
  std::deque<std::string> says_;
};

void welcome(OtherHalf& half, std::uint64_t heard = 0) {
  half.outbox.put(ViewerFrameKind::kWelcome, encode_welcome({.token = "t", .heard = heard}));
}

struct Shown {
  RemoteViewerEnd end;
  std::string out;
  std::string err;
};

class RemoteViewerTest : public ::testing::Test {
 protected:
  Shown follow(RemoteViewerOptions options) {
    options.order.job = "hello-3fa2";
    options.host = "h1";
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Shown shown;
    {
      auto viewer = RemoteViewer::create(*loop_, *door_, terminal_, *signals_, std::move(options));
      EXPECT_TRUE(viewer.ok());
      const TimerId alarm = loop_->at(boot_now() + Duration::seconds(20), [this] {
        ADD_FAILURE() << "it does not end";
        loop_->stop();
      });
      shown.end = (*viewer)->follow();
      loop_->cancel(alarm);
    }
    shown.out = ::testing::internal::GetCapturedStdout();
    shown.err = ::testing::internal::GetCapturedStderr();
    return shown;
  }

  // Anew for each session: a loop is stopped once.
  void SetUp() override { renew(); }
  void renew() {
    door_.reset();
    loop_ = *EventLoop::create();
    door_ = std::make_unique<FakeDoor>(*loop_);
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<FakeDoor> door_;
  Terminal terminal_;
  std::unique_ptr<SignalFd> signals_ = *SignalFd::create(SignalPolicy::signals(ViewerKind::kOwner));
};

Act shows_and_ends(int exit_code) {
  return [exit_code](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind != ViewerFrameKind::kOrder) return;
    welcome(half);
    half.outbox.put(ViewerFrameKind::kOut, "out\n");
    half.outbox.put(ViewerFrameKind::kErr, "err\n");
    half.outbox.put(ViewerFrameKind::kEnd,
                    encode_end({.exit_code = exit_code, .job = {.life = "ended", .phase = "failed"}}));
  };
}

}  // namespace

TEST_F(RemoteViewerTest, ShowsWhatComesAndExitsAsTheOtherHalfDid) {
  door_->then(shows_and_ends(7));
  const Shown shown = follow({});
  EXPECT_EQ(shown.out, "out\n");
  EXPECT_EQ(shown.err, "err\n");
  EXPECT_EQ(shown.end.exit_code, 7);
  EXPECT_EQ(shown.end.job->life, "ended");
}

TEST_F(RemoteViewerTest, LetsNoMachineSteerATerminalAndTouchesNothingInAPipe) {
  const Act steers = [](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind != ViewerFrameKind::kOrder) return;
    welcome(half);
    half.outbox.put(ViewerFrameKind::kOut, "\x1b[31mred\x1b[0m\x1b[6n\n");
    half.outbox.put(ViewerFrameKind::kErr, "\x1b]0;ti");
    half.outbox.put(ViewerFrameKind::kErr, "tle\x07\n");
    half.outbox.put(ViewerFrameKind::kEnd, encode_end({.exit_code = 0, .job = {.life = "ended", .phase = "done"}}));
  };
  door_->then(steers);
  const Shown piped = follow({});
  EXPECT_EQ(piped.out, "\x1b[31mred\x1b[0m\x1b[6n\n");
  EXPECT_EQ(piped.err, "\x1b]0;title\x07\n");
  renew();
  terminal_.out_is_terminal = terminal_.err_is_terminal = true;
  door_->then(steers);
  const Shown shown = follow({});
  EXPECT_EQ(shown.out, "\x1b[31mred\x1b[0m\\x1b[6n\n");
  EXPECT_EQ(shown.err, "\\x1b]0;title\\x07\n");
}

TEST_F(RemoteViewerTest, SaysWhyThereIsNoConnectionAndTriesNoOther) {
  const Shown shown = follow({.order = {.lingers = 60}});
  EXPECT_EQ(shown.end.exit_code, 69);
  EXPECT_EQ(shown.err, "error[E0910]: h1: refused\n");
  EXPECT_EQ(door_->opened, 1);
}

TEST_F(RemoteViewerTest, GoesOnWhereItWasAfterALostConnection) {
  door_->then([](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder) {
      welcome(half);
      half.outbox.put(ViewerFrameKind::kOut, "one\n");
    }
    // Its word that this was taken is the last but a signal that is heard of it.
    if (frame.kind == ViewerFrameKind::kTaken) ::raise(SIGUSR1);
    half.cut = frame.kind == ViewerFrameKind::kSignal;
  });
  std::uint64_t taken = 0;
  door_->then([&](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder) {
      taken = decode_order(frame.payload)->taken;
      welcome(half, 1);  // the signal had come
      half.outbox.put(ViewerFrameKind::kOut, "two\n");
      half.outbox.put(ViewerFrameKind::kEnd, encode_end({.exit_code = 0}));
    }
    if (frame.kind == ViewerFrameKind::kSignal) ADD_FAILURE() << "it came twice";
  });
  const Shown shown = follow({.order = {.lingers = 60}, .kind = ViewerKind::kOwner});
  EXPECT_EQ(shown.out, "one\ntwo\n");
  EXPECT_EQ(shown.end.exit_code, 0);
  EXPECT_EQ(taken, 1U);
}

TEST_F(RemoteViewerTest, LetsAnotherGoOnWhereTheViewerThereHasEnded) {
  door_->then([](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder) {
      welcome(half);
      half.outbox.put(ViewerFrameKind::kOut, "one\n");
    }
    if (frame.kind == ViewerFrameKind::kTaken) ::raise(SIGUSR1);
    if (frame.kind == ViewerFrameKind::kSignal) half.outbox.put(ViewerFrameKind::kTaken, encode_numbers({1}));
    half.cut = frame.kind == ViewerFrameKind::kPing;
  });
  door_->then([](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind != ViewerFrameKind::kOrder) return;
    EXPECT_EQ(decode_order(frame.payload)->token, "t");
    half.outbox.put(ViewerFrameKind::kRefused, "the viewer here has ended meanwhile");
  });
  std::vector<std::string> words;
  door_->then([&words](OtherHalf& half, const ViewerFrame& frame) {
    EXPECT_NE(frame.kind, ViewerFrameKind::kSignal) << "the one before had it";
    if (frame.kind != ViewerFrameKind::kOrder) return;
    words = decode_order(frame.payload)->words;
    welcome(half);
    half.outbox.put(ViewerFrameKind::kOut, "three\n");
    half.outbox.put(ViewerFrameKind::kEnd, encode_end({.exit_code = 0}));
  });
  const Shown shown = follow(
      {.order = {.words = {"follow"}, .lingers = 60}, .kind = ViewerKind::kOwner, .again = {"follow", "--from-now"}});
  EXPECT_EQ(shown.out, "one\nthree\n");
  EXPECT_EQ(words, (std::vector<std::string>{"follow", "--from-now"}));
  EXPECT_NE(shown.err.find("the viewer on h1 has ended meanwhile, and another goes on"), std::string::npos)
      << shown.err;
  EXPECT_EQ(shown.end.exit_code, 0);
}

TEST_F(RemoteViewerTest, GivesUpWhenItsTimeIsOverAndSaysThatTheJobGoesOn) {
  door_->then([](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder) welcome(half);
    if (frame.kind == ViewerFrameKind::kPing) half.cut = true;
  });
  const Shown shown = follow({.order = {.lingers = 60},
                              .says_so = Duration::milliseconds(100),
                              .silence = Duration::seconds(1),
                              .tries = Duration::milliseconds(700)});
  EXPECT_EQ(shown.end.exit_code, 69);
  EXPECT_NE(shown.err.find("lost h1, trying again for 700ms; hello-3fa2 goes on there\n"), std::string::npos)
      << shown.err;
  EXPECT_NE(shown.err.find("h1 does not answer; hello-3fa2 goes on there (h1: refused)\n"), std::string::npos)
      << shown.err;
  EXPECT_NE(shown.err.find("monarch attach hello-3fa2"), std::string::npos);
}

TEST_F(RemoteViewerTest, TakesSilenceForALostConnection) {
  door_->then([](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder) welcome(half);  // and no answer to any question
  });
  door_->then(shows_and_ends(0));
  const Shown shown = follow(
      {.order = {.lingers = 60}, .says_so = Duration::milliseconds(200), .silence = Duration::milliseconds(800)});
  EXPECT_EQ(shown.end.exit_code, 0);
  EXPECT_NE(shown.err.find("lost h1, trying again"), std::string::npos) << shown.err;
  EXPECT_NE(shown.err.find("h1 answers again"), std::string::npos) << shown.err;
}

TEST_F(RemoteViewerTest, RefusesByNameWhatAHostileMachineSays) {
  const std::string hello = encode_frame(ViewerFrameKind::kWelcome, encode_welcome({.token = "t"}));
  const std::string huge("\x12\x80\0\0\0\0\0\0\0", 9);
  const auto file = [](std::string_view name, std::uint64_t size) {
    return encode_frame(ViewerFrameKind::kFile, encode_file({.name = std::string(name), .size = size}));
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"Welcome to h1\n", "a frame of the unknown kind 87"},
      {hello + huge, "a frame of 9223372036854775808 bytes, of which 262144 are the most"},
      {encode_frame(ViewerFrameKind::kOut, "early"), "a frame before the welcome"},
      {hello + encode_frame(ViewerFrameKind::kSignal, encode_numbers({9})), "a frame out of its turn"},
      {hello + encode_frame(ViewerFrameKind::kTaken, encode_numbers({99})),
       "99 frames are said to have come, and 0 were sent"},
      {encode_frame(ViewerFrameKind::kWelcome, encode_welcome({.heard = 7})),
       "7 frames are said to have come, and 0 were sent"},
      {hello + encode_frame(ViewerFrameKind::kEnd, "{"), "an end that cannot be read"},
      {hello + file("../../x", 1), "a file called `../../x`, which is none that was asked for"},
      {hello + file("junit.xml", 1), "junit.xml: a file that nobody asked for"},
      {hello + encode_frame(ViewerFrameKind::kFileBytes, "x"), "bytes of no file"},
  };
  for (const auto& [said, why] : cases) {
    renew();
    door_->then_says(said);
    const Shown shown = follow({.order = {.lingers = 60}});
    EXPECT_EQ(shown.end.exit_code, 70) << why;
    EXPECT_EQ(shown.err, "error[E0910]: h1 said what cannot be taken: " + why + "\n");
    EXPECT_EQ(shown.out, "");
  }
}

TEST_F(RemoteViewerTest, LetsNoRefusalSteerATerminal) {
  door_->then([](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder)
      half.outbox.put(ViewerFrameKind::kRefused, "no\x1b[2J\nmonarch: all is well");
  });
  const Shown shown = follow({});
  EXPECT_EQ(shown.end.exit_code, 70);
  EXPECT_EQ(shown.err, "error[E0910]: h1: no\\x1b[2J\\x0amonarch: all is well\n");
}

TEST_F(RemoteViewerTest, ACtrlCBeforeAnybodyAnswersDetachesAWatcher) {
  door_->then([](OtherHalf&, const ViewerFrame&) {});
  ::raise(SIGINT);
  const Shown watcher = follow({.order = {.lingers = 60}});
  EXPECT_EQ(watcher.end.exit_code, 130);
  EXPECT_NE(watcher.err.find("hello-3fa2 goes on there: monarch attach hello-3fa2"), std::string::npos) << watcher.err;
}

TEST_F(RemoteViewerTest, ASecondCtrlCOfAnOwnerLeaves) {
  door_->then([](OtherHalf&, const ViewerFrame&) {});
  ::raise(SIGINT);
  loop_->at(loop_->now() + Duration::milliseconds(50), [] { ::raise(SIGINT); });
  const Shown owner = follow({.order = {.lingers = 60}, .kind = ViewerKind::kOwner});
  EXPECT_EQ(owner.end.exit_code, 130);
  EXPECT_NE(owner.err.find("is stopped when it does; Ctrl-C again leaves"), std::string::npos) << owner.err;
}

TEST_F(RemoteViewerTest, AWishThatWasMadeBeforeAnybodyAnsweredIsTold) {
  door_->then([this](OtherHalf& half, const ViewerFrame& frame) {
    if (frame.kind == ViewerFrameKind::kOrder) {
      OtherHalf* later = &half;
      loop_->at(loop_->now() + Duration::milliseconds(100), [later] {
        welcome(*later);
        later->link->flush();
      });
    }
    if (frame.kind == ViewerFrameKind::kSignal) {
      half.outbox.put(ViewerFrameKind::kEnd, encode_end({.exit_code = 130}));
      EXPECT_EQ(*decode_numbers(frame.payload, 1), std::vector<std::uint64_t>{SIGINT});
    }
  });
  ::raise(SIGINT);
  const Shown owner = follow({.order = {.lingers = 60}, .kind = ViewerKind::kOwner});
  EXPECT_EQ(owner.end.exit_code, 130);
  EXPECT_EQ(door_->opened, 1);
}

}  // namespace monarch
