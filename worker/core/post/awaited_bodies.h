#pragma once

// AwaitedBodies: messages of one way from another host, in the order in which they were said, where the bodies of some
// come by another connection: none goes on before all before it have, and a body that comes first waits for its
// message. Who says a body and never sends it makes no more wait than the limits.
//
// Thread: a value; pure.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace monarch {

struct AwaitedLimits {
  std::size_t messages = 65'536;
  std::uint64_t bytes = 256U << 20U;  // of these, with the bodies in them and beside them
  std::size_t early = 64;             // bodies that came before their messages, of so many bytes as well
};

template <class Message, class Body>
class AwaitedBodies {
 public:
  explicit AwaitedBodies(AwaitedLimits limits = {}) : limits_(limits) {}

  struct Next {
    Message message;
    std::optional<Body> body;  // of a message whose body came so
  };

  // `body`: the number of one that it waits for. `bytes`: of the message and of the body beside it.
  void said(Message message, std::optional<std::uint64_t> body, std::uint64_t bytes = 0) {
    queue_.push_back({std::move(message), body, bytes});
    bytes_ += bytes;
  }
  void arrived(std::uint64_t number, Body body, std::uint64_t bytes = 0) {
    forget(bodies_.find(number));
    bodies_.emplace(number, Early{std::move(body), bytes});
    early_bytes_ += bytes;
  }

  // The first that waits for nothing.
  std::optional<Next> take() {
    if (queue_.empty()) return std::nullopt;
    Said& first = queue_.front();
    Next next{std::move(first.message), {}};
    if (first.body) {
      const auto found = bodies_.find(*first.body);
      if (found == bodies_.end()) {
        first.message = std::move(next.message);
        return std::nullopt;
      }
      next.body = std::move(found->second.body);
      forget(found);
    }
    bytes_ -= first.bytes;
    queue_.pop_front();
    return next;
  }
  bool is_empty() const { return queue_.empty() && bodies_.empty(); }
  std::size_t waiting() const { return queue_.size(); }
  // Bodies that came before their messages.
  std::size_t early() const { return bodies_.size(); }
  // Then nothing of it is waited for any more.
  bool is_too_much() const {
    return queue_.size() > limits_.messages || bytes_ > limits_.bytes || bodies_.size() > limits_.early ||
           early_bytes_ > limits_.bytes;
  }
  // What does not arrive any more is not waited for: the first message that is left without its body and all behind it
  // are dropped, which are these, with the bodies that came beside them.
  std::vector<Message> lost() {
    bodies_.clear();
    early_bytes_ = 0;
    bytes_ = 0;
    std::vector<Message> dropped;
    for (Said& said : std::exchange(queue_, {})) dropped.push_back(std::move(said.message));
    return dropped;
  }

 private:
  struct Said {
    Message message;
    std::optional<std::uint64_t> body;
    std::uint64_t bytes = 0;
  };
  struct Early {
    Body body;
    std::uint64_t bytes = 0;
  };
  using Bodies = std::map<std::uint64_t, Early>;
  void forget(typename Bodies::iterator body) {
    if (body == bodies_.end()) return;
    early_bytes_ -= body->second.bytes;
    bodies_.erase(body);
  }

  AwaitedLimits limits_;
  std::deque<Said> queue_;
  std::uint64_t bytes_ = 0;  // of what is in the queue
  Bodies bodies_;
  std::uint64_t early_bytes_ = 0;
};

}  // namespace monarch
