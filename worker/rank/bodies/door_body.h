#pragma once

// DoorBody: the bytes of a body that has come, where they lie, and who reads them. What lies in a block of its sender's
// stays as it is until this process says that nobody reads it there any more.
//
// Thread: any; a DoorBody one at a time.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/post.h"
#include "transport/wire/mapped_memory.h"
#include "worker/rank/bodies/kept_mappings.h"

namespace monarch {

// Who reads a body that has come beside its message. Owners: those, and who has to say when there are none.
class BodyReaders {
 public:
  BodyReaders(std::shared_ptr<const MappedMemory> memory, std::string_view bytes, bool is_lent)
      : memory_(std::move(memory)), bytes_(bytes), is_lent_(is_lent) {}
  BodyReaders(const BodyReaders&) = delete;
  BodyReaders& operator=(const BodyReaders&) = delete;

  std::string_view bytes() const { return bytes_; }
  // The sender waits for the word that nobody reads it any more.
  bool is_lent() const { return is_lent_; }
  bool any();
  // Once there are none, on the thread of the last; at once, if there are none.
  void when_none(std::function<void()> tell);

 private:
  friend class BodyReading;
  void begin();
  void end();

  const std::shared_ptr<const MappedMemory> memory_;  // owners: this, and the one that keeps it mapped
  const std::string_view bytes_;
  const bool is_lent_;
  std::mutex mutex_;
  std::size_t readers_ = 0;
  std::function<void()> tell_;
};

// One of them.
class BodyReading {
 public:
  explicit BodyReading(std::shared_ptr<BodyReaders> of) : of_(std::move(of)) { of_->begin(); }
  BodyReading(const BodyReading&) = delete;
  BodyReading& operator=(const BodyReading&) = delete;
  ~BodyReading() { end(); }
  // Before it ends by itself.
  void end() {
    if (!ended_.exchange(true)) of_->end();
  }

 private:
  const std::shared_ptr<BodyReaders> of_;
  std::atomic<bool> ended_{false};
};

class DoorBody {
 public:
  // `beside`: the descriptors of its message. kInvalid: it is none that a post sends. `kept`: where blocks stay mapped;
  // nullptr: nowhere.
  static Result<DoorBody> take(CallBody body, std::vector<UniqueFd>& beside, KeptMappings* kept = nullptr);

  std::string_view bytes() const { return readers_ ? readers_->bytes() : std::string_view(here_); }
  // nullptr: it came in its message.
  const std::shared_ptr<BodyReaders>& readers() const { return readers_; }
  // As long as this, or a copy of it, is there.
  const std::shared_ptr<BodyReading>& reading() const { return reading_; }

 private:
  std::string here_;
  std::shared_ptr<BodyReaders> readers_;
  std::shared_ptr<BodyReading> reading_;  // owners: the copies of this
};

}  // namespace monarch
