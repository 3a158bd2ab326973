#pragma once

// CardAsks: questions for cards of other ranks, over the connection to the post of this host. A question that a post
// has not answered when it ends is asked again at the next one.
//
// Thread: any; answers are given on the thread of the connection. Lifetime: within that of the door.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/base/result.h"
#include "transport/messages/post.h"
#include "worker/rank/door_thread.h"

namespace monarch {

class CardAsks {
 public:
  struct Answer {
    std::uint64_t generation = 0;
    std::string text;
    std::string personal;  // secret of who asks; empty: the card has no key
  };
  // kGone: there is none, and will be none; kNotFound: since its rank has ended in order. Called once, if the question
  // is not taken back.
  using Handler = std::function<void(Result<Answer>)>;

  explicit CardAsks(std::string name) : name_(std::move(name)) {}
  CardAsks(const CardAsks&) = delete;
  CardAsks& operator=(const CardAsks&) = delete;

  // For the card of that rank of a generation after `since`.
  std::uint64_t ask(const std::string& mesh, std::uint32_t rank, std::uint64_t since, Handler handler);
  void take_back(std::uint64_t question);

  // Of the door.
  void came(const DoorThread::Connection& connection);
  void ended(const DoorThread::Connection& connection);
  void heard(const PostAnswer& answer, std::vector<UniqueFd>& beside);
  void heard(const PostOver& over);

 private:
  struct Question {
    std::string mesh;
    std::uint32_t rank = 0;
    std::uint64_t since = 0;
    Handler handler;
  };

  PostCall call_of(std::uint64_t number, const Question& question) const;
  void answer(std::uint64_t number, Result<Answer> answer);

  const std::string name_;  // of the cards
  std::mutex mutex_;
  std::map<std::uint64_t, Question> questions_;
  std::uint64_t next_ = 1;
  DoorThread::Connection connection_;
};

}  // namespace monarch
