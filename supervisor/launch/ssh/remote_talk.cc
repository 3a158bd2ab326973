#include "supervisor/launch/ssh/remote_talk.h"

#include <algorithm>
#include <utility>

#include "supervisor/launch/talk/remote_script.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

RemoteTalk::RemoteTalk(SshSession& session, RemoteOrder order, const WorkerImage* image,
                       const RemoteTalkOptions& options)
    : session_(session),
      bootstrap_(order.bootstrap),
      conversation_(std::move(order)),
      image_(image),
      options_(options),
      patience_(options.silence, options.cancel) {}

std::optional<RemoteAnswer> RemoteTalk::step() {
  const Status carried = carry();
  if (!carried.ok()) return failure(carried.error());
  return conversation_.answer();
}

void RemoteTalk::finish() {
  note_progress(true);
  if (channel_) (void)channel_->send_eof();  // a connection that has ended ends the input as well
}

void RemoteTalk::note_progress(bool said_all) {
  if (!said_all && conversation_.understood() == understood_ && moved_ < kStretchBytes) return;
  patience_ = Patience(options_.silence, options_.cancel);
  understood_ = conversation_.understood();
  moved_ = 0;
}

RemoteAnswer RemoteTalk::failure(const Error& error) {
  if (error.code == ErrorCode::kTimeout) return conversation_.timed_out(patience_.late());
  if (error.code == ErrorCode::kGone) {
    conversation_.on_end(std::nullopt);
    if (conversation_.answer()) return *conversation_.answer();
  }
  return LaunchFailure{.kind = LaunchFailureKind::kOther,
                       .phase = conversation_.phase(),
                       .message = error.message,
                       .words = conversation_.words()};
}

Status RemoteTalk::carry() {
  if (!channel_) {
    note_progress(true);
    MONARCH_ASSIGN(channel_, session_.exec(remote_command(), patience_));
    note_progress(true);
  }
  take_turn();
  MONARCH_TRY(read_blobs());
  const bool said = say();
  MONARCH_ASSIGN(const SshOutput heard, channel_->read_some());
  if (!heard.err.empty()) conversation_.on_words(heard.err);
  if (!heard.out.empty()) conversation_.on_output(heard.out);
  if (blobs_asked_ > 0 && options_.on_sent)
    options_.on_sent(std::min(conversation_.came(), blobs_asked_), blobs_asked_);
  note_copy();
  if (conversation_.answer()) return {};
  if (conversation_.talking()) moved_ += heard.out.size();
  note_progress(said && words_.empty() && file_left_.empty() && blobs_left_.empty());
  if (heard.ended) {
    note_progress(true);
    MONARCH_ASSIGN(const auto status, channel_->exit_status(patience_));
    conversation_.on_end(status);
    MONARCH_ASSERT(conversation_.answer().has_value());
    return {};
  }
  if (patience_.over(boot_now())) return Error{ErrorCode::kTimeout, "it does not get on"};
  if (said || !heard.out.empty() || !heard.err.empty()) return {};
  return channel_->wait(patience_);
}

void RemoteTalk::note_copy() {
  const bool copying = conversation_.phase() == "copy";
  if (copying && copy_began_ == Instant::never()) copy_began_ = boot_now();
  if (!copying && copy_began_ != Instant::never() && copy_ == Duration()) copy_ = boot_now() - copy_began_;
}

void RemoteTalk::take_turn() {
  const RemoteTurn turn = conversation_.take_turn();
  words_ += turn.bytes;
  // The conversation says it when the worker has been executed, and never before.
  handed_over_ = handed_over_ || (!bootstrap_.empty() && turn.bytes.ends_with(bootstrap_));
  for (const std::size_t index : turn.blobs) {
    MONARCH_ASSERT(options_.workspace != nullptr);
    blobs_left_.push_back(options_.workspace->blobs().at(index));
    blobs_asked_ += blobs_left_.back().size;
  }
  if (!turn.file) return;
  MONARCH_ASSERT(image_ != nullptr);
  file_left_ = image_->bytes;
}

// Some more of them, when what was read before is on its way.
Status RemoteTalk::read_blobs() {
  while (words_.empty() && !blobs_left_.empty()) {
    TreeBlob& blob = blobs_left_.front();
    if (blob.size > 0) {
      MONARCH_ASSIGN(words_, options_.workspace->read(blob.offset, blob.size));
      blob.offset += words_.size();
      blob.size -= words_.size();
    }
    if (blob.size == 0) blobs_left_.pop_front();
  }
  return {};
}

// Whether anything went out. A script that has ended takes nothing more; what it wrote before tells why.
bool RemoteTalk::say() {
  const std::string_view next = words_.empty() ? file_left_ : std::string_view(words_);
  const auto written = channel_->write_some(next);
  if (!written.ok() || *written == 0) return false;
  moved_ += *written;
  words_.empty() ? file_left_.remove_prefix(*written) : static_cast<void>(words_.erase(0, *written));
  return true;
}

// What was sent to a file that could not be executed has reached nobody.
bool may_have_run(const RemoteAnswer& answer) {
  const auto* const failure = std::get_if<LaunchFailure>(&answer);
  return failure == nullptr || failure->kind != LaunchFailureKind::kNotExecutable;
}

RemoteResult remote_talk(SshSession& session, RemoteOrder order, const WorkerImage* image,
                         const RemoteTalkOptions& options) {
  RemoteTalk talk(session, std::move(order), image, options);
  for (;;) {
    auto answer = talk.step();
    if (!answer) continue;
    const bool handed_over = talk.handed_over() && may_have_run(*answer);
    return {std::move(*answer), talk.copy(), handed_over};
  }
}

}  // namespace monarch
