#include "supervisor/launch/ssh/program_pump.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "supervisor/launch/ssh/session/dial.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {
// How long a program that has closed its output may take to end.
constexpr Duration kStatusPatience = Duration::seconds(5);
}  // namespace

// Whether anything moved.
bool ProgramPump::carry_in() {
  bool moved = false;
  if (inward_.empty() && !program_ended_) {
    auto output = channel_->read_some();
    if (!output.ok()) {
      broken_ = output.error().message;
      return false;
    }
    program_ended_ = output->ended;
    keep_words(output->err);
    moved = output->ended || !output->out.empty() || !output->err.empty();
    inward_ = std::move(output->out);
  }
  if (unread_) inward_.clear();
  if (inward_.empty()) return moved;
  const ssize_t sent = ::send(socket_.get(), inward_.data(), inward_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    unread_ = unread_ || !is_later(errno);
    return moved || unread_;
  }
  inward_.erase(0, static_cast<std::size_t>(sent));
  return true;
}

bool ProgramPump::carry_out() {
  if (outward_.empty() && !input_ended_) {
    std::array<char, kSocketPiece> piece{};
    const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got < 0 && is_later(errno)) return false;
    input_ended_ = got <= 0;
    if (got > 0) outward_.assign(piece.data(), static_cast<std::size_t>(got));
  }
  if (outward_.empty()) {
    if (told_) return false;
    told_ = true;
    (void)channel_->send_eof();  // of a connection that has ended; its program's input has, too
    return true;
  }
  const auto written = channel_->write_some(outward_);
  if (!written.ok()) {
    // The program reads nothing any more; what it still writes is read until it ends.
    outward_.clear();
    input_ended_ = told_ = true;
    return true;
  }
  outward_.erase(0, *written);
  return *written > 0;
}

void ProgramPump::keep_words(const std::string& more) {
  words_ += more;
  if (words_.size() > kWordsBytes) words_.erase(0, words_.size() - kWordsBytes);
}

void ProgramPump::watch(std::vector<pollfd>& watched) const {
  // What has come and is not taken here would end every wait at once, and so would the end of a connection that nobody
  // reads.
  if (inward_.empty() || session_.writes_wait()) session_.watch(watched, inward_.empty());
  const bool reads = outward_.empty() && !input_ended_;
  const bool writes = !inward_.empty() && !unread_;
  if (reads || writes) {
    watched.push_back({socket_.get(), static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0});
  }
}

SshProgramEnd ProgramPump::ended(std::string why, const PumpOptions& options) {
  SshProgramEnd end{.exit_status = {}, .why = std::move(why), .words = words_};
  if (!end.why.empty()) return end;
  const auto status = channel_->exit_status({kStatusPatience, options.cancel});
  if (status.ok()) end.exit_status = *status;
  if (!end.exit_status && !session_.connected()) end.why = text("the connection ended: ", session_.error());
  return end;
}

SshProgramEnd ProgramPump::carry(const PumpOptions& options) {
  std::uint64_t read = session_.bytes_read();
  Instant heard = boot_now();
  std::optional<FairDeadline> answers;  // to what was asked since then
  for (;;) {
    session_.carry();
    bool moved = true;
    for (int round = 0; moved && round < kCarryRounds && broken_.empty(); ++round) {
      const std::uint64_t before = session_.bytes_read();
      const bool in = carry_in();
      const bool out = broken_.empty() && carry_out();
      moved = in || out || session_.bytes_read() != before;
    }
    if (program_ended_ && inward_.empty()) return ended("", options);
    if (!broken_.empty()) return ended(std::exchange(broken_, {}), options);
    if (!session_.connected()) return ended(text("the connection ended: ", session_.error()), options);
    const Instant now = boot_now();
    // Unread bytes are no silence.
    if (session_.bytes_read() != read || !inward_.empty()) {
      heard = now;
      answers.reset();
    }
    read = session_.bytes_read();
    // It has its time to answer, however late this thread is with its question or with its look.
    if (answers && answers->over(now)) {
      return ended(text("no sign of life for ", to_text(options.dead_after), late_words(answers->late())), options);
    }
    if (now >= heard + options.ask_after) {
      if (!answers) answers.emplace(options.dead_after - options.ask_after, now);
      session_.ask_for_life();
    }
    std::vector<pollfd> watched;
    watch(watched);
    const Instant until = answers ? answers->look_by(now) : heard + options.ask_after;
    if (wait_until(watched, moved ? now : until, options.cancel) == WaitEnd::kCancelled) {
      return ended("cancelled", options);
    }
  }
}

}  // namespace monarch
