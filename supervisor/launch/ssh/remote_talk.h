#pragma once

// RemoteTalk: one RemoteConversation over one session: the remote command is executed, its bytes are carried, and a
// standstill ends it. remote_talk(): one to its answer.
//
// Thread: the session's, which waits here.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/launch/ssh/session/ssh_session.h"
#include "supervisor/launch/talk/remote_conversation.h"
#include "supervisor/launch/talk/worker_image.h"
#include "supervisor/workspace/pack.h"
#include "transport/base/time.h"

namespace monarch {

struct RemoteTalkOptions {
  int cancel = -1;
  // So long without getting on: no line of the protocol was understood, and of bytes that may be many went less than
  // kStretchBytes. Whatever else a host says keeps nobody waiting.
  Duration silence = Duration::seconds(30);
  const WorkspacePack* workspace = nullptr;  // of an order for one
  // Of what the host lacks of it: how much has come there, as it says. Often.
  std::function<void(std::uint64_t came, std::uint64_t of)> on_sent = {};
};

struct RemoteResult {
  RemoteAnswer answer;
  Duration copy;             // from the file's first byte to the host's word that it has it; zero: nothing was copied
  bool handed_over = false;  // the worker was told to start: if the answer is a failure, it may run all the same
};

// False: the answer proves that the worker was never executed, whatever was sent to it.
bool may_have_run(const RemoteAnswer& answer);

// `image` may be null where the order names an installed worker, and outlives the talk.
class RemoteTalk {
 public:
  static constexpr std::uint64_t kStretchBytes = 64U << 10U;

  RemoteTalk(SshSession& session, RemoteOrder order, const WorkerImage* image, const RemoteTalkOptions& options);

  RemoteConversation& conversation() { return conversation_; }
  // What can be said and heard now; where that is nothing, until there is something. The answer: there is one now,
  // whichever it is.
  std::optional<RemoteAnswer> step();
  // The far side reads the end of its input.
  void finish();
  // After the answer that a program runs: what it reads and writes, for who goes on with it.
  std::unique_ptr<SshChannel> take_channel() { return std::move(channel_); }

  bool handed_over() const { return handed_over_; }
  Duration copy() const { return copy_; }  // as of RemoteResult

 private:
  void note_progress(bool said_all);
  RemoteAnswer failure(const Error& error);
  Status carry();
  void note_copy();
  void take_turn();
  Status read_blobs();
  bool say();

  SshSession& session_;
  std::string bootstrap_;
  bool handed_over_ = false;
  Instant copy_began_ = Instant::never();
  Duration copy_;
  RemoteConversation conversation_;
  const WorkerImage* image_;
  RemoteTalkOptions options_;
  std::unique_ptr<SshChannel> channel_;
  std::string words_;                // to be written, before the file
  std::string_view file_left_;       // of it
  std::deque<TreeBlob> blobs_left_;  // behind what was read of them into words_
  std::uint64_t blobs_asked_ = 0;    // bytes
  Patience patience_;                // unless it gets on before
  std::uint64_t understood_ = 0;     // lines, when it last did
  std::uint64_t moved_ = 0;          // bytes since then
};

RemoteResult remote_talk(SshSession& session, RemoteOrder order, const WorkerImage* image,
                         const RemoteTalkOptions& options);

}  // namespace monarch
