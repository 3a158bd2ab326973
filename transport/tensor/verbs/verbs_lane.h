#pragma once

// VerbsLane: an owner elsewhere, whose slots are READ through the network card, which asks nothing of his process. It
// rides on a TcpLane: the link is by what both meet, tells who lives, and takes rows that are too short to be READ one
// by one. What fails of it while the link lives goes over the link: a lane's own error names no cause.
//
// The word is READ once all rows are here, never behind them in the queue: a card may fetch from memory first what was
// asked for last.
//
// Thread, lifetime: a Lane's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/time.h"
#include "transport/tensor/destination.h"
#include "transport/tensor/lane.h"
#include "transport/tensor/tcp_lane.h"
#include "transport/tensor/verbs/queue_words.h"
#include "transport/tensor/verbs/verbs_destination.h"

namespace monarch::tensor {

class VerbsLane final : public Lane {
 public:
  static constexpr std::uint32_t kReadBytes = 256U << 10U;  // of one READ: more at a time are slower on soft-RoCE
  static constexpr std::size_t kUnderWay = 32;              // READs
  static constexpr std::size_t kToldEvery = 8;              // of them one says that it is done
  static constexpr Duration kDrain = Duration::seconds(5);

  struct Options {
    std::string towards;  // numeric, the owner's host
    bool tcp = true;      // rows may go over the link, too
  };

  VerbsLane(std::unique_ptr<TcpLane> link, Destination& destination, VerbsDestination& known, Options options);
  ~VerbsLane() override;

  LaneKind kind() const override { return queue_ ? LaneKind::kVerbs : LaneKind::kTcp; }
  // Why rows go over the link.
  const std::string& why_not() const { return why_not_; }
  void begin(const VersionId& version, const LaneWork& work) override;
  // begin() may have had all at once, or have found that it leads nowhere.
  bool is_busy() const override {
    return work_ != nullptr && (more_ || phase_ == Phase::kAllHere || (long_over_link_ && short_.pieces.empty()));
  }
  void poll_for(std::vector<pollfd>& descriptors) const override;
  Status go_on() override;
  std::optional<std::uint64_t> word() override;
  void say_read(const VersionId& version, bool whole) override { link_->say_read(version, whole); }
  [[nodiscard]] bool stop() override;

 private:
  enum class Phase : std::uint8_t {
    kIdle,
    kLooking,  // which of his slots that are known has the version
    kAsking,   // which slot has it
    kRows,
    kWord,
    kAllHere,
    kOverLink,
  };
  static constexpr std::size_t kViews = 8;  // slots that are known at a time
  struct View {
    std::uint16_t slot = 0;
    std::uint64_t serial = 0;
    std::uint64_t bytes = 0;
    std::uint32_t key = 0;
  };
  struct Next {  // that is READ
    std::size_t piece = 0;
    std::uint32_t row = 0;
    std::uint64_t at = 0;
    std::optional<Destination::Room> room{};  // of the piece
  };
  struct Filling {  // all of it is READ, or is under way
    std::size_t piece = 0;
    Destination::Room room;
    std::uint64_t last = 0;  // READ
  };

  Status start_meeting();
  Status heard(const StreamLink::Received& word);
  Status met(const VerbsWord& theirs);
  void split(const LaneWork& work);
  void look();
  void ask_slot();
  Status heard_slot(const LinkFrame& frame);
  void post_rows();
  // Rooms whose READs are done.
  void take_filled();
  void drop_rooms();
  void post_word(const View& view, std::size_t into);
  void post(VerbsRead read);
  void take_completions();
  // Whether all went well that is done now.
  bool count(const std::vector<VerbsCompletion>& taken);
  void completed();
  void stop_verbs(const std::string& why);
  Status go_over_link();
  bool drain();

  const std::unique_ptr<TcpLane> link_;
  Destination& destination_;
  VerbsDestination& known_;
  const Options options_;
  Status broken_;
  std::string why_not_;
  std::string failure_;  // of a READ
  // Where words of slots come to; known to the device for as long as the queue is.
  struct Words {
    std::array<std::uint64_t, kViews> words{};
  };
  const std::unique_ptr<Words> words_ = std::make_unique<Words>();
  std::unique_ptr<VerbsMemory> words_memory_;
  std::unique_ptr<VerbsQueue> queue_;  // nullptr: rows go over the link
  QueueAddress own_;
  std::uint32_t gid_index_ = 0;
  bool met_ = false;
  bool armed_ = false;
  bool more_ = false;  // may be done, and was not looked at
  std::uint64_t posted_ = 0;
  std::uint64_t done_ = 0;

  std::vector<View> views_;
  int asked_ = 0;  // for slots, without an answer yet
  Phase phase_ = Phase::kIdle;
  const LaneWork* work_ = nullptr;
  VersionId version_;
  LaneWork short_;  // goes over the link
  LaneWork long_;   // is READ
  View view_;       // that has the version
  Next next_;
  std::deque<Filling> filling_;
  bool waits_for_room_ = false;
  std::uint64_t word_ = 0;
  bool long_over_link_ = false;  // behind the short ones
};

}  // namespace monarch::tensor
