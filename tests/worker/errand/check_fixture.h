#pragma once

// CheckProcess: a `monarch-worker check` that a test asks as a doctor does.
//
// Thread: the test's.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/messages/check.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

namespace monarch {

class CheckProcess : public KeeperTest {
 protected:
  void begin() {
    const char* worker = std::getenv("MONARCH_WORKER");
    ASSERT_NE(worker, nullptr) << "MONARCH_WORKER names the executable under test";
    int in[2];
    int out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    SpawnOptions options = program({worker, "check"});
    options.environment = {"PATH=/usr/bin:/bin", "HOME=" + path("")};
    options.descriptors = {{in[0], 0}, {out[1], 1}, {2, 2}};
    options.prepare = prepare_;
    child_ = start(options);
    (void)::close(in[0]);
    (void)::close(out[1]);
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    (void)::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  }
  CheckAnswer ask(CheckRequest request) {
    request.words = words_;
    const std::string bytes = encode_piece(encode_payload(request));
    EXPECT_EQ(::write(to_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    std::optional<std::string> piece;
    EXPECT_TRUE(until([&] {
      char buffer[65536];
      const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
      if (got > 0) bytes_.append(buffer, static_cast<std::size_t>(got));
      const auto taken = take_piece(bytes_);
      if (taken.ok()) piece = *taken;
      return piece.has_value();
    }));
    const auto answer = decode_payload<CheckAnswer>(piece.value_or(""), kCheckBytes);
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? *answer : CheckAnswer{};
  }

  // Its last step before it is executed; see SpawnOptions.
  std::function<std::optional<StepFailure>(std::vector<std::string>&)> prepare_;
  DoorWords words_ = {.word = "word-0123456789", .answer = "answer-0123456789"};
  Child* child_ = nullptr;
  UniqueFd to_;
  UniqueFd from_;
  std::string bytes_;
};

}  // namespace monarch
