#pragma once

// DoorClient: one connection of a process to the post of its host (worker/post/README.md). Its end is the post's: who
// has it makes another one.
//
// Thread: send() any; hear() one, or one at a time. Each waits.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/post.h"
#include "transport/wire/frame.h"
#include "transport/wire/messages.h"
#include "worker/rank/bodies/body_pieces.h"
#include "worker/rank/bodies/door_body.h"
#include "worker/rank/bodies/door_memory.h"

namespace monarch {

class DoorClient {
 public:
  static constexpr std::uint32_t kCountedVersion = 3;  // of the door

  struct Heard {
    Frame frame;
    std::vector<UniqueFd> descriptors;
  };

  // Once it is welcome. kGone: the post has closed it, and the message says why, if the post did. kTimeout after
  // `patience`. Once `stop` is readable, who waits here or later gets kGone; -1: nobody stops it. What it sends is lent
  // from `memory`.
  static Result<std::unique_ptr<DoorClient>> come(const std::string& path, const PostHello& hello, Duration patience,
                                                  std::shared_ptr<DoorMemory> memory, int stop = -1);
  DoorClient(const DoorClient&) = delete;
  DoorClient& operator=(const DoorClient&) = delete;

  const PostWelcome& welcome() const { return welcome_; }

  // Waits while the post does not read. kGone: it has ended. kTimeout: a call was not sent within its deadline.
  template <class Message>
  Status send(const Message& message) {
    return send_frame(frame_of(message), {});
  }
  // kBusy: it would have to wait.
  template <class Message>
  Status try_to_send(const Message& message) {
    return try_frame(frame_of(message));
  }
  // send() with the bytes of its body.
  Status send(PostCall call, const BodyPieces& arguments);
  Status send(PostReply reply, const BodyPieces& value);

  // A body that came with a message of this connection. Of one that is lent the post is to be told, when it has no
  // readers any more: by a reply that does not keep it, or by let_go().
  Result<DoorBody> take(CallBody body, std::vector<UniqueFd>& beside) const;
  // Waits for nothing: what the post does not read now it is told later.
  void let_go(const PostLetGo& word);

  // The next message. kGone at the end, with the post's words if it had some; kTimeout after `patience`.
  Result<Heard> hear(Duration patience = Duration::forever());
  // hear() in two, for several threads of which one hears at a time. False: nothing is there to be heard at `until`, or
  // `wake` is readable; -1: nobody wakes it.
  Result<bool> wait_for_word(Instant until, int wake) const;
  // Nothing: none is there any more.
  Result<std::optional<Heard>> try_to_hear();
  // hear() and send() end, now and from now on.
  void close();
  // False: somebody in this process has closed its descriptor, which may be another's now.
  bool has_its_socket() const;

 private:
  DoorClient(UniqueFd socket, std::shared_ptr<DoorMemory> memory, int stop);
  template <class Message>
  Status send_with(Message& message, CallBody& body, const BodyPieces& pieces, Instant until);
  // Both say that they count who reads a block.
  bool counts() const { return std::min(said_version_, welcome_.version) >= kCountedVersion; }
  void tell_let_go();
  Status send_frame(const Frame& frame, std::vector<UniqueFd> descriptors, Instant until = Instant::never());
  Status try_frame(const Frame& frame);

  UniqueFd socket_;
  std::uint64_t inode_ = 0;                   // its; 0: unknown
  const std::shared_ptr<DoorMemory> memory_;  // owners: the connections of a process, and what a plugin has of it
  const int stop_;
  std::mutex sending_;  // held while a message goes, and by nobody who waits
  std::mutex letting_go_;
  std::deque<PostLetGo> let_go_;  // what the post has not read yet
  std::uint32_t said_version_ = 0;
  PostWelcome welcome_;
};

}  // namespace monarch
