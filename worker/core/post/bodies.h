#pragma once

// Bodies: who still needs which bytes, of those that a post carries and whose driver has them, and how many are of
// which host. HeldBody is one need; when the last has ended the driver may let the bytes go.
//
// Thread: values of one core; pure. A HeldBody ends before its Bodies.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "transport/base/assert.h"
#include "transport/messages/post.h"

namespace monarch {

class HeldBody;

class Bodies {
 public:
  // What came with an event; `from`: of another host, which it counts for.
  HeldBody hold(const CallBody& body, std::optional<HostId> from = {});
  // Those that nobody needs any more, since the last time.
  std::vector<BodyId> take_free() { return std::exchange(free_, {}); }
  std::size_t held() const { return needs_.size(); }
  // Each once.
  std::uint64_t bytes() const { return bytes_; }
  // Of these, what is of bodies that are too large for other hosts.
  std::uint64_t large_bytes() const { return large_bytes_; }
  std::uint64_t bytes_of(HostId host) const {
    const auto found = bytes_of_.find(host);
    return found == bytes_of_.end() ? 0 : found->second;
  }

 private:
  friend class HeldBody;
  struct Need {
    std::uint64_t count = 0;
    std::optional<HostId> from;
  };
  static std::uint64_t large_part(const CallBody& body) { return body.bytes > kFarBodyBytes ? body.bytes : 0; }
  void add(const CallBody& body, const std::optional<HostId>& from = {}) {
    Need& need = needs_[body.at];
    if (need.count++ > 0) return;
    need.from = from;
    bytes_ += body.bytes;
    large_bytes_ += large_part(body);
    if (from) bytes_of_[*from] += body.bytes;
  }
  void remove(const CallBody& body) {
    const auto found = needs_.find(body.at);
    MONARCH_ASSERT(found != needs_.end());
    if (--found->second.count > 0) return;
    bytes_ -= body.bytes;
    large_bytes_ -= large_part(body);
    if (const auto of = found->second.from ? bytes_of_.find(*found->second.from) : bytes_of_.end();
        of != bytes_of_.end() && (of->second -= body.bytes) == 0) {
      bytes_of_.erase(of);
    }
    needs_.erase(found);
    free_.push_back(body.at);
  }

  std::map<BodyId, Need> needs_;
  std::vector<BodyId> free_;
  std::uint64_t bytes_ = 0;
  std::uint64_t large_bytes_ = 0;
  std::map<HostId, std::uint64_t> bytes_of_;
};

class HeldBody {
 public:
  HeldBody() = default;
  HeldBody(Bodies& bodies, const CallBody& body, const std::optional<HostId>& from) : bodies_(&bodies), body_(body) {
    if (holds()) bodies_->add(body_, from);
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

inline HeldBody Bodies::hold(const CallBody& body, std::optional<HostId> from) { return {*this, body, from}; }

}  // namespace monarch
