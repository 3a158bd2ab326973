#pragma once

// ViewerOutbox: what is to go to the other side of a viewer's link. Counted frames are kept until the other side says
// that it took them, and are sent again over a new connection from where that one stands; others are of one connection
// only, and go first.
//
// It is bounded by who puts: at full() it reads nothing more that would be put.
//
// Thread: a value.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "cli/away/viewer_frames.h"
#include "transport/base/result.h"

namespace monarch {

class ViewerOutbox {
 public:
  static constexpr std::size_t kFullBytes = 1U << 20U;
  static constexpr std::size_t kMostKept = 16U << 10U;  // frames

  void put(ViewerFrameKind kind, std::string_view payload = {});
  bool full() const { return kept_bytes_ >= kFullBytes || kept_.size() >= kMostKept; }

  // What is to be written next; empty: nothing.
  std::string_view unsent();
  void sent(std::size_t bytes);

  // The other side has taken so many since the beginning. kInvalid: it cannot have.
  Status taken(std::uint64_t count);
  // There is a new connection, on which nothing has been said.
  void start_again();
  // There is another reader, who has taken nothing: what no one has taken is for him.
  void renumber();
  // While held, only what is of this connection goes out.
  void hold(bool held) { held_ = held; }
  // All that is counted has been taken.
  bool done() const { return kept_.empty(); }

 private:
  std::deque<std::string> kept_;  // counted, from number first_ on
  std::uint64_t first_ = 0;
  std::size_t next_ = 0;    // of them: the first that has not been given to this connection
  std::uint64_t most_ = 0;  // how many were given to any connection
  std::size_t kept_bytes_ = 0;
  bool held_ = false;
  std::deque<std::string> other_;
  std::string writing_;
  std::size_t written_ = 0;
};

}  // namespace monarch
