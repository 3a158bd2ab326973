#pragma once

// OutputWriter: bytes to a descriptor that may be slow (a pager, a terminal with Ctrl-S) without ever making the loop
// wait. A buffer takes them; what the descriptor does not take now is written when it can be. The buffer has a limit:
// its owner looks at full() and reads no more.
//
// The descriptor itself is never made non-blocking: that would change it for every process that shares it.
//
// Thread: the loop's. Lifetime: shorter than the loop and the descriptor.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class OutputWriter {
 public:
  // `fd` stays the caller's. SIGPIPE must be ignored.
  static std::unique_ptr<OutputWriter> create(EventLoop& loop, int fd);
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;
  ~OutputWriter();

  // Appended to by the owner, who then calls flush() or, for few bytes at a time, flush_if_large().
  std::string& buffer() { return buffer_; }
  void write(std::string_view bytes) {
    buffer_.append(bytes);
    flush();
  }
  void flush();
  void flush_if_large() {
    if (buffer_.size() - written_ >= kLargeBytes) flush();
  }

  bool empty() const { return buffer_.size() == written_; }
  bool full() const { return buffer_.size() - written_ >= kFullBytes; }
  // The reader went away or the disk is full: what is written from then on is dropped. 0 while all is well.
  int error() const { return error_; }

  // Called when a full or busy writer has emptied its buffer.
  void on_drained(std::function<void()> call) { drained_ = std::move(call); }
  // Waits until all is written, or until `deadline`; for the end of a program.
  void drain(Duration deadline);

  static constexpr std::size_t kLargeBytes = 128U << 10U;
  static constexpr std::size_t kFullBytes = 4U << 20U;

 private:
  enum class Kind : std::uint8_t {
    kDirect,  // a file or a device that never makes us wait
    kOwn,     // our own non-blocking description of the same pipe or terminal
    kSocket,  // MSG_DONTWAIT does it
    kShared,  // none to be had: at most kShareBytes at a time, when it is writable
  };
  OutputWriter(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {}
  long write_some(std::string_view bytes) const;
  void wait_writable();
  void settle();

  EventLoop& loop_;
  int fd_;
  UniqueFd own_;
  Kind kind_ = Kind::kDirect;
  std::string buffer_;
  std::size_t written_ = 0;
  int error_ = 0;
  WatchId watch_ = 0;
  bool waiting_ = false;
  std::function<void()> drained_;
};

}  // namespace monarch
