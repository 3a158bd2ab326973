#include "cli/follow/input_feed.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace monarch {

InputFeed::~InputFeed() { stop(); }

void InputFeed::connected(Ask ask) {
  ask_ = std::move(ask);
  ++connections_;
  if (done_) return;
  // Who gives input says so before there is any: it may be typed.
  ask_(InputRequest{.offset = piece_.offset, .bytes = {}, .end = false}, [](const Result<Accepted>&) {});
  has_piece_ ? say() : wait();
}

void InputFeed::lost() {
  ask_ = {};
  if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
}

void InputFeed::wait() {
  if (watch_ != 0) return;
  auto watch = fd_ < 0 ? Result<WatchId>(Error{}) : loop_.watch(fd_, Interest::kRead, [this](Readiness) { read(); });
  if (!watch.ok()) return read();  // a file never makes anybody wait
  watch_ = *watch;
}

void InputFeed::read() {
  if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
  piece_.bytes.resize(kInputBytes);
  const ssize_t count = fd_ < 0 ? 0 : ::read(fd_, piece_.bytes.data(), piece_.bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return wait();
  piece_.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  piece_.end = count <= 0;  // one that cannot be read has nothing more, either
  has_piece_ = true;
  say();
}

void InputFeed::say() {
  if (!ask_) return;
  ask_(piece_, [this, connection = connections_](const Result<Accepted>& with) { answered(connection, with); });
}

void InputFeed::answered(std::uint64_t connection, const Result<Accepted>& with) {
  if (connection != connections_ || done_) return;
  if (!with.ok() && with.error().code == ErrorCode::kGone) return;           // whoever comes next is asked
  if (!with.ok() && with.error().code == ErrorCode::kTimeout) return say();  // the ranks do not read just now
  if (!with.ok() || piece_.end) return stop();  // nobody reads it any more, or all of it is there
  piece_.offset += piece_.bytes.size();
  has_piece_ = false;
  wait();
}

void InputFeed::stop() {
  done_ = true;
  if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
}

}  // namespace monarch
