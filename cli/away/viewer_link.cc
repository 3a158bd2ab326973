#include "cli/away/viewer_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

Status make_ready(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return errno_error("fcntl F_SETFL", errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<ViewerLink>> ViewerLink::open(EventLoop& loop, UniqueFd in, UniqueFd out, ViewerOutbox& outbox,
                                                     ViewerLinkHandlers handlers) {
  std::unique_ptr<ViewerLink> link(new ViewerLink(loop, outbox, std::move(handlers)));
  // Two numbers: an epoll set takes each once.
  if (!out.valid()) out = UniqueFd(::fcntl(in.get(), F_DUPFD_CLOEXEC, 3));
  if (!out.valid()) return errno_error("fcntl F_DUPFD_CLOEXEC", errno);
  MONARCH_TRY(make_ready(in.get()));
  MONARCH_TRY(make_ready(out.get()));
  link->in_ = std::move(in);
  link->out_ = std::move(out);
  ViewerLink* self = link.get();
  MONARCH_ASSIGN(link->reading_, loop.watch(self->in_.get(), Interest::kRead, [self](Readiness) { self->receive(); }));
  outbox.start_again();
  return link;
}

ViewerLink::~ViewerLink() {
  stop_reading();
  stop_writing();
}

void ViewerLink::stop_reading() {
  if (reading_ != 0) loop_.forget(std::exchange(reading_, 0));
}

void ViewerLink::stop_writing() {
  if (writing_ != 0) loop_.forget(std::exchange(writing_, 0));
}

void ViewerLink::watch_in() {
  auto watch = loop_.watch(in_.get(), Interest::kRead, [this](Readiness) { receive(); });
  if (!watch.ok()) return lose(watch.error());
  reading_ = *watch;
}

void ViewerLink::pause() {
  paused_ = true;
  stop_reading();  // and not Interest::kNone: a hangup would be reported at every turn
}

void ViewerLink::resume() {
  if (!paused_ || lost_) return;
  paused_ = false;
  watch_in();
  // What had come before the pause was not told.
  loop_.defer(scope_.guard([this] { take_frames(); }));
}

void ViewerLink::lose(Error why) {
  if (std::exchange(lost_, true)) return;
  stop_reading();
  stop_writing();
  handlers_.on_lost(std::move(why));
}

void ViewerLink::receive() {
  std::array<char, 64U << 10U> piece{};
  const long got = ::read(in_.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return lose(errno_error(ErrorCode::kGone, "reading", errno));
  if (got == 0) return lose({ErrorCode::kGone, reader_.empty() ? "it ended" : "it ended in the middle of a word"});
  reader_.feed({piece.data(), static_cast<std::size_t>(got)});
  take_frames();
}

void ViewerLink::take_frames() {
  while (!paused_ && !lost_) {
    auto frame = reader_.next();
    if (!frame.ok()) return lose(frame.error());
    if (!*frame) return;
    const Status taken = handlers_.on_frame(std::move(**frame));
    if (!taken.ok()) return lose(taken.error());
  }
}

void ViewerLink::flush() {
  while (!lost_) {
    const std::string_view bytes = outbox_.unsent();
    if (bytes.empty()) return stop_writing();
    const long wrote = ::write(out_.get(), bytes.data(), bytes.size());
    if (wrote >= 0) {
      outbox_.sent(static_cast<std::size_t>(wrote));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      // Told by the loop: whoever flushes is in the middle of something.
      const Error why = errno_error(ErrorCode::kGone, "writing", errno);
      stop_writing();
      loop_.defer(scope_.guard([this, why] { lose(why); }));
      return;
    }
    if (writing_ != 0) return;
    auto watch = loop_.watch(out_.get(), Interest::kWrite, [this](Readiness) { flush(); });
    if (!watch.ok()) return lose(watch.error());
    writing_ = *watch;
    return;
  }
}

}  // namespace monarch
