#pragma once

// What a publisher tells the registrar of its gang, which is the first rank of it: Registrar is that one itself, and
// RegistrarLink the way there of all others.
//
// Thread: the loop's. Lifetime: within that of the loop and the server.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "transport/loop/event_loop.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/core/registrar_core.h"
#include "transport/tensor/link_dial.h"
#include "transport/tensor/owner_server.h"

namespace monarch::tensor {

class ToRegistrar {
 public:
  // What it answers.
  struct Handlers {
    std::function<void(const std::string& why)> unfit;   // what is published here does not fit what others publish
    std::function<void(std::uint64_t number)> all_hold;  // all publishers have that version
    std::function<void()> release;                       // nobody needs what is held here any more
  };

  ToRegistrar() = default;
  ToRegistrar(const ToRegistrar&) = delete;
  ToRegistrar& operator=(const ToRegistrar&) = delete;
  virtual ~ToRegistrar() = default;

  virtual void publishes(const Index& index) = 0;
  virtual void holds(std::uint64_t number) = 0;
  virtual void ends() = 0;
  // What somebody says who is linked here; false: it is not for a registrar. kInvalid: he may not say it, and why.
  virtual Result<bool> heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word) = 0;
  virtual void left(LinkNumber link, const HelloAsk& peer) = 0;
  // Where the registrar is.
  virtual void found(const Card& card) = 0;
};

// Behind kIndex.
struct PublishedWord {
  Index index;
  codec::Bytes card;
};
MONARCH_FIELDS(PublishedWord, index, card)

// Behind kOpened.
struct OwnerCard {
  std::uint32_t rank = 0;
  codec::Bytes card;
};
MONARCH_FIELDS(OwnerCard, rank, card)
// Counted before they are read, as an index is.
struct OwnerCards {
  std::vector<OwnerCard> list;
};
inline void codec_write(codec::Writer& writer, const OwnerCards& cards) { codec::write(writer, cards.list); }
inline bool codec_read(codec::Reader& reader, OwnerCards& cards) {
  std::size_t memory = kIndexMemory / 16;
  return read_within(reader, cards.list, memory);
}
struct OpenedWord {
  Index index;
  OwnerCards cards;
};
MONARCH_FIELDS(OpenedWord, index, cards)

class Registrar final : public ToRegistrar {
 public:
  Registrar(EventLoop& loop, OwnerServer& server, RegistrarOptions options, Handlers handlers);
  ~Registrar() override { loop_.cancel(timer_); }

  void publishes(const Index& index) override;
  void holds(std::uint64_t number) override;
  void ends() override;
  Result<bool> heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word) override;
  void left(LinkNumber link, const HelloAsk& peer) override;
  void found(const Card& /*card*/) override {}

 private:
  bool has_place(LinkNumber link, std::uint32_t rank) const;
  void take_place(LinkNumber link, std::uint32_t rank);
  Status heard_publisher(LinkNumber link, std::uint32_t rank, const StreamLink::Received& word);
  void feed(const RegistrarEvent& event);
  void perform(const registrar_action::AllHold& action);
  void perform(const registrar_action::Opened& action);
  void perform(const registrar_action::Waits& action);
  void perform(const registrar_action::Over& action);
  void perform(const registrar_action::Unfit& action);
  void perform(const registrar_action::Release& action);

  EventLoop& loop_;
  OwnerServer& server_;
  const std::uint64_t generation_;
  const Handlers handlers_;
  RegistrarCore core_;
  std::map<std::uint32_t, LinkNumber> publishers_;  // by rank, of those that are linked
  std::map<std::uint32_t, codec::Bytes> cards_;
  std::optional<std::string> opened_;  // the word that goes with an index, once it is whole
  TimerId timer_ = 0;
};

class RegistrarLink final : public ToRegistrar {
 public:
  // `self` publishes; `slots`: versions that it holds.
  RegistrarLink(EventLoop& loop, const OwnerServer& server, std::string publication, std::uint32_t registrar,
                std::size_t slots, Handlers handlers);
  ~RegistrarLink() override;

  void publishes(const Index& index) override;
  void holds(std::uint64_t number) override;
  void ends() override;
  Result<bool> heard(LinkNumber /*link*/, const HelloAsk& /*peer*/, const StreamLink::Received& /*word*/) override {
    return false;
  }
  void left(LinkNumber /*link*/, const HelloAsk& /*peer*/) override {}
  void found(const Card& card) override;

 private:
  static constexpr Duration kFirstPause = Duration::milliseconds(5);
  static constexpr Duration kLongestPause = Duration::milliseconds(500);
  static constexpr Duration kDialPatience = Duration::seconds(5);

  void dial();
  void go_on();
  void lost();
  void linked();
  void hear();
  void say(const LinkFrame& frame, std::string behind = {});
  void flush();
  void watch(int fd, bool writes);
  LinkFrame frame_of(FrameKind kind, std::uint64_t number = 0) const;

  EventLoop& loop_;
  const OwnerServer& server_;
  const std::string publication_;
  const std::uint32_t registrar_;
  const std::size_t slots_;
  const Handlers handlers_;
  std::optional<Card> card_;
  std::unique_ptr<LinkDial> dial_;
  std::unique_ptr<StreamLink> link_;
  WatchId watch_ = 0;
  TimerId timer_ = 0;
  Duration pause_ = kFirstPause;
  LinkWay way_ = LinkWay::kOnMachine;
  std::string published_;  // the word that is said on each link anew
  std::deque<std::uint64_t> holds_;
  bool ended_ = false;
  bool unfit_ = false;
};

}  // namespace monarch::tensor
