#pragma once

// Calls: what this process calls. Each call has for each of its ranks one answer and then an end, whatever becomes of
// the post: what was under way by a connection that has ended is Gone, since nobody knows whether it has run. The post
// counts deadlines; where it says nothing, they are kept here.
//
// Thread: any. Answers are given on the thread that reads the door (worker/rank/door_reader.h) where the call may be
// answered on any, else on a thread of its own; or on the caller's where a call cannot be sent.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "worker/rank/door_thread.h"

namespace monarch {

class Calls {
 public:
  struct Failure {
    std::string mesh;
    std::uint32_t rank = 0;  // the first of those that failed together
    std::uint64_t generation = 0;
    std::string cause;
  };

  // It comes to the door once there is something to call. `cut_off`: see DoorThread.
  using CutOff = std::function<void(const std::string& why)>;
  Calls(std::string door, PostHello hello, CutOff cut_off = {},
        std::shared_ptr<DoorMemory> memory = std::make_shared<DoorMemory>())
      : door_path_(std::move(door)),
        hello_(std::move(hello)),
        cut_off_(std::move(cut_off)),
        memory_(std::move(memory)) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() { stop(); }
  // What is open ends, and what is called later.
  void stop();

  // Waits while too much is under way; with MONARCH_CALL_TRY it is busy instead. The number is for cancel().
  std::uint64_t call(const monarch_call_v1& asked);
  void cancel(std::uint64_t number);
  // Waits for the post's first word. nullptr: there is no such mesh, or this process is about to end. Never freed.
  const RosterMesh* mesh(const std::string& name);
  // For the post's first word. kBusy: no thread for that is to be had. kGone: this process is about to end.
  Status wait();
  // The actor has nothing else to do until the call is over, and runs that delivery. The ring of actors that would wait
  // for ever, as the post says; empty: none is known. A post that does not say anything is asked again by the next.
  std::string begin_wait(std::uint64_t number, const std::string& actor, std::uint64_t delivery);
  void end_wait(std::uint64_t number);
  // Whether this is a thread that brings answers just now.
  bool is_here();
  // Waits for answers, and is the one who reads them, where none is yet: see DoorReader. False: it has not waited;
  // nothing is called yet, or answers are brought on this thread.
  bool read_until(const void* key, const std::function<bool()>& done, Instant until);
  void wake_readers(const void* key);
  // The answers of that call are wanted, though nobody need be in read_until() for them.
  void attend(std::uint64_t number);
  // On the thread of its own, which must not wait.
  void run(std::function<void()> run);
  // The hello has to say that it watches. `run` is kept and called until the process ends.
  void watch(std::function<void(const Failure&)> run);

 private:
  struct Call {
    DoorThread::Connection by;
    std::string mesh;
    std::string actor;
    std::uint64_t bytes = 0;
    Instant since;
    std::optional<Instant> deadline;
    std::vector<RankSteps> ranks;
    std::vector<std::uint32_t> answered;  // in the order in which they were
    enum class Waited : std::uint8_t { kNot, kAsked, kTold } waited = Waited::kNot;
    std::string ring;         // as the post has told it
    bool any_thread = false;  // it may be answered on any
    bool attended = false;    // its answers are wanted at once
    void (*on_answer)(void* user, const monarch_answer_v1* answer) = nullptr;
    void* user = nullptr;
  };
  // Of a callback, where there is no connection just now: it is sent by the next one.
  struct Unsent {
    PostCall message;
    std::string arguments;
  };
  struct Ending {
    std::uint32_t kind = 0;
    std::string text;
  };

  Result<std::shared_ptr<DoorThread>> door();
  std::shared_ptr<DoorThread> open_door();  // nullptr: nothing has been called yet
  // True: the thread of the door has to look for it sooner than it was about to.
  bool enter(std::uint64_t number, const Call& call);
  // More is under way than what so many threads read for.
  bool wants_own_thread(std::size_t waiting) const;
  // What is kept of it beside calls_.
  void forget(std::uint64_t number, const Call& call);
  void attend(Call& call);
  // What waits for nothing in read_until() is answered on the thread of its own.
  bool may_answer_here(std::uint64_t number);
  // Ends those whose deadline the post has not kept; until when there is none.
  Instant expire();
  // Why a call would wait; empty: it would not.
  std::string why_busy(const Call& call) const;
  void came(const DoorThread::Connection& connection);
  void send_unsent(const DoorThread::Connection& connection);
  void heard(DoorClient::Heard& heard);
  void answered(PostAnswer answer, std::vector<UniqueFd> beside);
  void answer_here(const PostAnswer& answer, std::vector<UniqueFd>& beside);
  void over(PostOver over);
  void over_here(const PostOver& over);
  void told_ring(const PostRing& said);
  void say_ended_waits();
  void failed(const PostFailure& failure);
  void end_all_of(const DoorThread::Connection& connection, const std::string& why);
  // Says to each rank that has not answered how it ended, and that there is no more.
  static void end(const Call& call, const Ending& ending);
  // Nothing: it has ended already.
  std::optional<Call> take(std::uint64_t number);

  const std::string door_path_;
  const PostHello hello_;
  const CutOff cut_off_;
  const std::shared_ptr<DoorMemory> memory_;  // owners: the doors of a process
  std::mutex mutex_;
  std::map<std::uint64_t, Call> calls_;
  // Of these; the thread that reads looks without the lock.
  std::atomic<std::size_t> under_way_{0};
  std::atomic<std::size_t> attended_{0};
  std::set<std::pair<Instant, std::uint64_t>> dues_;  // of those with a deadline, a little later than that
  Instant next_look_ = Instant::never();
  std::vector<Unsent> unsent_;
  std::vector<std::uint64_t> ended_waits_;  // of which the post is to be told
  std::condition_variable asked_;           // a ring is told, or a call that was waited for is over
  std::uint64_t next_ = 1;
  DoorThread::Connection live_;  // what is called by it ends with it
  std::map<std::string, RosterMesh> meshes_;
  std::vector<std::string> mesh_names_;  // by MeshId
  std::function<void(const Failure&)> watcher_;
  std::mutex starting_;
  bool stopped_ = false;
  std::shared_ptr<DoorThread> door_;  // owners: this, and who waits by it
};

}  // namespace monarch
