#pragma once

// Bodies: who still needs which bytes, of those that a post carries and whose driver has them. HeldBody is one need;
// when the last has ended the driver may let the bytes go.
//
// Thread: values of one core; pure. A HeldBody ends before its Bodies.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "transport/base/assert.h"
#include "transport/messages/post.h"

namespace monarch {

class HeldBody;

class Bodies {
 public:
  // What came with an event.
  HeldBody hold(const CallBody& body);
  // Those that nobody needs any more, since the last time.
  std::vector<BodyId> take_free() { return std::exchange(free_, {}); }
  std::size_t held() const { return needs_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  friend class HeldBody;
  void add(const CallBody& body) {
    if (needs_[body.at]++ == 0) bytes_ += body.bytes;
  }
  void remove(const CallBody& body) {
    const auto found = needs_.find(body.at);
    MONARCH_ASSERT(found != needs_.end());
    if (--found->second > 0) return;
    needs_.erase(found);
    bytes_ -= body.bytes;
    free_.push_back(body.at);
  }

  std::map<BodyId, std::uint64_t> needs_;
  std::vector<BodyId> free_;
  std::uint64_t bytes_ = 0;  // of all, each once
};

class HeldBody {
 public:
  HeldBody() = default;
  HeldBody(Bodies& bodies, const CallBody& body) : bodies_(&bodies), body_(body) {
    if (holds()) bodies_->add(body_);
  }
  HeldBody(const HeldBody& other) : bodies_(other.bodies_), body_(other.body_) {
    if (holds()) bodies_->add(body_);
  }
  HeldBody(HeldBody&& other) noexcept : bodies_(std::exchange(other.bodies_, nullptr)), body_(std::move(other.body_)) {}
  HeldBody& operator=(HeldBody other) noexcept {
    std::swap(bodies_, other.bodies_);
    std::swap(body_, other.body_);
    return *this;
  }
  ~HeldBody() {
    if (holds()) bodies_->remove(body_);
  }

  const CallBody& body() const { return body_; }
  std::uint64_t bytes() const { return body_.bytes; }

 private:
  bool holds() const { return bodies_ != nullptr && body_.at != BodyId(0); }

  Bodies* bodies_ = nullptr;
  CallBody body_;
};

inline HeldBody Bodies::hold(const CallBody& body) { return {*this, body}; }

}  // namespace monarch
