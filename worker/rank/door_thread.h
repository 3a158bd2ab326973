#pragma once

// DoorThread: keeps a connection to the post of this host, and hears it, where no other thread does (DoorReader). Where
// the post ends, it comes to the next one; it never gives up, and says every 30 s, in the output of its rank, that it
// waits. Meanwhile it looks, when it was told to, at what its owner may not wait for the post with.
//
// Thread: the owner's; wait() and what follows it any. The handlers are called one at a time: `heard` on the thread
// that reads, the others on one of its own. Lifetime: the destructor ends the connection and joins; longer than any
// thread is in read_until().

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/joining_thread.h"
#include "transport/messages/post.h"
#include "worker/rank/door_client.h"
#include "worker/rank/door_reader.h"

namespace monarch {

class DoorThread {
 public:
  using Connection = DoorReader::Connection;
  struct Handlers {
    std::function<void(const Connection&)> came;                           // before wait() gives it to others
    std::function<void(const Connection&, DoorClient::Heard&)> heard;      // a message that says nothing may be left so
    std::function<void(const Connection&, const std::string& why)> ended;  // wait() does not give it any more
    // It is called whenever the post has said nothing until then, or was woken; the time of its next call.
    std::function<Instant()> look = {};
    std::function<bool(std::size_t waiting)> wanted = {};  // see DoorReader
    // This process lives and no call reaches it any more, by no fault of the post: its descriptors were closed by
    // somebody else in it, or none is to be had. It is the thread's last word, within some seconds of that.
    std::function<void(const std::string& why)> cut_off = {};
  };

  // `memory`: by which the bodies of this process travel.
  static Result<std::unique_ptr<DoorThread>> start(std::string path, PostHello hello, Handlers handlers,
                                                   std::shared_ptr<DoorMemory> memory = std::make_shared<DoorMemory>());
  DoorThread(const DoorThread&) = delete;
  DoorThread& operator=(const DoorThread&) = delete;
  ~DoorThread() { stop(); }

  // Ends the connection, and whoever waits for one.
  void stop();
  // The connection that stands, or the next one; nullptr: there was none until then, or it is about to end. A handler
  // waits for nothing: the next one comes by its thread.
  Connection wait(Instant until);
  // Handlers::look is called soon.
  void wake() const;
  // Whether this is the thread of the handlers, or one that handles a message just now.
  bool is_here() const { return is_own() || reader_->handles_here(); }
  bool is_own() const { return std::this_thread::get_id() == own_; }
  // Waits for what the post says, and is the one who reads it, where none is yet: see DoorReader. False: it has not
  // waited; a handler waits for nothing.
  bool read_until(const void* key, const std::function<bool()>& done, Instant until);
  void wake_readers(const void* key) { reader_->wake(key); }
  void attend() { reader_->attend(); }
  // On its own thread: at once if this is that.
  void run(std::function<void()> run);

 private:
  DoorThread(std::string path, PostHello hello, Handlers handlers, std::shared_ptr<DoorMemory> memory)
      : path_(std::move(path)), hello_(std::move(hello)), handlers_(std::move(handlers)), memory_(std::move(memory)) {}
  void live(int stop);
  Instant look() const;
  // Empty: all is as it was made.
  std::string why_cut_off(const DoorClient* connection) const;
  // Comes to the door, again and again. Empty: it is told to stop.
  std::string come_and_hear();
  // kGone: it has ended.
  Error hear_to_the_end(const Connection& connection) const;
  void set(Connection connection);

  const std::string path_;
  const PostHello hello_;
  const Handlers handlers_;
  const std::shared_ptr<DoorMemory> memory_;  // owners: the doors of a process
  std::mutex mutex_;
  std::condition_variable changed_;
  Connection now_;
  bool ending_ = false;
  std::unique_ptr<DoorReader> reader_;
  int stop_ = -1;  // its thread's
  std::atomic<std::thread::id> own_{};
  std::unique_ptr<JoiningThread> thread_;  // last: it uses the others
};

}  // namespace monarch
