#include "cli/term/output_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// POLLOUT of a pipe promises room for PIPE_BUF bytes (pipe(7)); a blocking write of more would wait.
constexpr std::size_t kShareBytes = 4096;

int open_again(int fd) {
  return ::open(text("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

}  // namespace

std::unique_ptr<OutputWriter> OutputWriter::create(EventLoop& loop, int fd) {
  std::unique_ptr<OutputWriter> writer(new OutputWriter(loop, fd));
  struct stat what {};
  if (::fstat(fd, &what) != 0) return writer;  // closed: the first write says so
  if (S_ISSOCK(what.st_mode)) {
    writer->kind_ = Kind::kSocket;
  } else if (S_ISFIFO(what.st_mode) || ::isatty(fd) == 1) {
    writer->own_ = UniqueFd(open_again(fd));
    writer->kind_ = writer->own_.valid() ? Kind::kOwn : Kind::kShared;
  }
  return writer;
}

OutputWriter::~OutputWriter() {
  if (watch_ != 0) loop_.forget(watch_);
}

long OutputWriter::write_some(std::string_view bytes) const {
  switch (kind_) {
    case Kind::kDirect: return ::write(fd_, bytes.data(), bytes.size());
    case Kind::kOwn: return ::write(own_.get(), bytes.data(), bytes.size());
    case Kind::kSocket: return ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::kShared: {
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(fd_, bytes.data(), std::min(bytes.size(), kShareBytes));
    }
  }
  return -1;
}

void OutputWriter::flush() {
  while (written_ < buffer_.size() && error_ == 0) {
    const long wrote = write_some(std::string_view(buffer_).substr(written_));
    if (wrote >= 0) {
      written_ += static_cast<std::size_t>(wrote);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      wait_writable();
      return;
    }
    error_ = errno;
  }
  settle();
}

void OutputWriter::wait_writable() {
  // What was written is let go of now and then, not at every write: moving the rest costs as much as copying it.
  if (written_ >= kFullBytes) {
    buffer_.erase(0, written_);
    written_ = 0;
  }
  if (waiting_) return;
  waiting_ = true;
  const int fd = own_.valid() ? own_.get() : fd_;
  const auto on_ready = [this](Readiness) { flush(); };
  if (watch_ == 0) {
    auto watch = loop_.watch(fd, Interest::kWrite, on_ready);
    if (watch.ok()) {
      watch_ = *watch;
    } else {
      error_ = EBADF;  // it can be written to and not be watched: there is no such descriptor
      settle();
    }
    return;
  }
  loop_.change(watch_, Interest::kWrite);
}

void OutputWriter::settle() {
  buffer_.clear();
  written_ = 0;
  if (!waiting_) return;
  waiting_ = false;
  if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
  if (drained_) drained_();
}

void OutputWriter::drain(Duration deadline) {
  const Instant until = boot_now() + deadline;
  flush();
  while (!empty() && error_ == 0 && boot_now() < until) {
    pollfd ready{.fd = own_.valid() ? own_.get() : fd_, .events = POLLOUT, .revents = 0};
    // EINTR and a deadline that passed are both seen by the loop's condition.
    (void)::poll(&ready, 1, EventLoop::wait_milliseconds(boot_now(), until));
    flush();
  }
}

}  // namespace monarch
