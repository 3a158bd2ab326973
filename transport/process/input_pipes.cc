#include "transport/process/input_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/process/pipe.h"

namespace monarch {

InputPipes::~InputPipes() {
  for (auto& [key, pipe] : pipes_) shut(pipe);
}

Result<UniqueFd> InputPipes::open(const Incarnation& key) {
  MONARCH_ASSIGN(auto made, make_pipe(PipeReader::kWaits));
  // This end's alone: what reads the other one waits as from any pipe.
  if (::fcntl(made.writer.get(), F_SETFL, O_WRONLY | O_NONBLOCK) != 0) return errno_error("an input pipe", errno);
  close(key);
  pipes_[key].writer = std::move(made.writer);
  return std::move(made.reader);
}

void InputPipes::give(const Incarnation& key, const Input& order) {
  const std::uint64_t behind = order.offset + order.bytes.size();
  const auto found = pipes_.find(key);
  if (found == pipes_.end() || !found->second.writer.valid()) {
    return tell_({.process = key, .offset = behind, .over = true});
  }
  Pipe& pipe = found->second;
  if (!pipe.next) pipe.next = order.offset;
  const bool follows = order.offset <= *pipe.next && behind >= *pipe.next;
  const std::size_t fresh = follows ? static_cast<std::size_t>(behind - *pipe.next) : 0;
  if (follows && pipe.waiting.size() + fresh <= kInputBytes && !pipe.end) {
    pipe.waiting.append(order.bytes, order.bytes.size() - fresh);
    pipe.next = behind;
    pipe.end = order.end;
  }
  write(key, pipe);
}

// WARNING: SIGPIPE is ignored in a keeper; a reader that has gone is EPIPE.
void InputPipes::write(const Incarnation& key, Pipe& pipe) {
  while (!pipe.waiting.empty()) {
    const ssize_t count = ::write(pipe.writer.get(), pipe.waiting.data(), pipe.waiting.size());
    if (count >= 0) {
      pipe.waiting.erase(0, static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (pipe.watch != 0) return;
      const auto watched = loop_.watch(pipe.writer.get(), Interest::kWrite, [this, key](Readiness) {
        const Incarnation whose = key;  // this goes with its watch, which ends once all is written
        const auto found = pipes_.find(whose);
        if (found != pipes_.end()) write(whose, found->second);
      });
      if (watched.ok()) pipe.watch = *watched;  // else the next order for it tries again
      return;
    } else if (errno != EINTR) {
      pipe.waiting.clear();
      pipe.end = true;
    }
  }
  if (pipe.watch != 0) loop_.forget(std::exchange(pipe.watch, 0));
  if (pipe.end) shut(pipe);
  tell_({.process = key, .offset = pipe.next.value_or(0), .over = !pipe.writer.valid()});
}

void InputPipes::shut(Pipe& pipe) {
  if (pipe.watch != 0) loop_.forget(std::exchange(pipe.watch, 0));
  pipe.writer.reset();
}

void InputPipes::close(const Incarnation& key) {
  const auto found = pipes_.find(key);
  if (found == pipes_.end()) return;
  shut(found->second);
  pipes_.erase(found);
}

}  // namespace monarch
