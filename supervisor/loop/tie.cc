#include "supervisor/loop/tie.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace monarch {

Tie::Tie(EventLoop& loop, UniqueFd fd, std::function<void()> on_end)
    : loop_(loop), fd_(std::move(fd)), on_end_(std::move(on_end)) {}

Tie::~Tie() { loop_.forget(watch_); }

Result<std::unique_ptr<Tie>> Tie::create(EventLoop& loop, UniqueFd fd, std::function<void()> on_end) {
  std::unique_ptr<Tie> tie(new Tie(loop, std::move(fd), std::move(on_end)));
  MONARCH_ASSIGN(tie->watch_,
                 loop.watch(tie->fd_.get(), Interest::kRead, [self = tie.get()](Readiness) { self->read(); }));
  return tie;
}

// WARNING: the guard and whoever started the job have the same open file, so it is not made one that never waits
// (O_NONBLOCK is of the file, not of the descriptor; open(2)). It is read once after each time that it was ready, and
// nobody else reads it.
void Tie::read() {
  std::array<char, 4096> bytes{};
  const long got = ::read(fd_.get(), bytes.data(), bytes.size());
  if (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN))) return;
  loop_.forget(std::exchange(watch_, 0));
  on_end_();
}

}  // namespace monarch
