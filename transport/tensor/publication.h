#pragma once

// Publication: what a rank publishes under one name, as the owner's thread has it: its slots, who reads them, and what
// the registrar of the gang is told. The bytes are written by the publisher's thread (publisher.h), which asks here for
// the slot of each version.
//
// Thread: the loop's. Lifetime: within that of the server.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "transport/loop/event_loop.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/core/owner_core.h"
#include "transport/tensor/owner_server.h"
#include "transport/tensor/registrar.h"
#include "transport/tensor/slot.h"
#include "transport/tensor/verbs/verbs_mirrors.h"

namespace monarch::tensor {

struct PublicationOptions {
  std::string name;
  std::set<std::uint32_t> publishers;  // ranks of the gang, as the mesh counts them
  std::uint32_t registrar = 0;         // the first rank of the gang
  OwnerOptions owner;
  Duration linger = Duration::seconds(30);
};

// What it says to the publisher's thread.
namespace publisher_word {

struct Write {  // the version that was asked for, into that slot
  std::size_t slot = 0;
  std::shared_ptr<Slot> memory;  // owners: both threads, and who is sent rows of it. nullptr: it has none yet
};
struct Refused {  // the same, which is not to be written now
  std::string text;
};
struct Unfit {  // it publishes nothing any more
  std::string text;
};
struct Released {};  // nobody needs what it holds any more

}  // namespace publisher_word

using PublisherWord =
    std::variant<publisher_word::Write, publisher_word::Refused, publisher_word::Unfit, publisher_word::Released>;

class Publication {
 public:
  using Tell = std::function<void(PublisherWord)>;

  Publication(EventLoop& loop, OwnerServer& server, const PublicationOptions& options, Tell tell);
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  ~Publication();

  const std::string& name() const { return name_; }
  // Answered by Write or Refused.
  void begin(std::uint64_t number);
  // It is in the memory of the slot that Write has named. `index`: of the first version.
  void commit(std::shared_ptr<Slot> memory, const std::optional<Index>& index);
  // `keeps`: the publisher keeps that memory, and there is other for the next version.
  void abandon(bool keeps);
  void end() {
    ended_ = true;
    to_registrar_->ends();
  }
  // Where the registrar is, where that is another rank.
  void found(const Card& registrar) { to_registrar_->found(registrar); }

 private:
  struct Memory {
    std::shared_ptr<Slot> slot;
    std::uint64_t serial = 0;            // which memory it is
    std::unique_ptr<VerbsMemory> known;  // to the device, once a reader wants to READ it
  };

  void heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word);
  bool heard_reader(LinkNumber link, const StreamLink::Received& word);
  // Where that version is; nullptr: nowhere.
  Memory* memory_of(const VersionId& version, std::uint16_t& slot);
  void meet(LinkNumber link, const StreamLink::Received& word);
  void give_key(LinkNumber link, LinkFrame frame);
  void give_slot(LinkNumber link, LinkFrame frame);
  void give_rows(LinkNumber link, const LinkFrame& frame);
  void give_word(LinkNumber link, LinkFrame frame);
  void feed(const OwnerEvent& event);
  void renew(std::size_t slot);
  void perform(const owner_action::Renew& action) { renew(action.slot); }
  void perform(const owner_action::EndLink& action);
  void perform(const owner_action::Write& action);
  void perform(const owner_action::Refuse& action) { tell_(publisher_word::Refused{action.text}); }
  void perform(const owner_action::Offer& action) { to_registrar_->holds(action.number); }

  EventLoop& loop_;
  OwnerServer& server_;
  const std::string name_;
  const Tell tell_;
  OwnerCore core_;
  std::vector<Memory> slots_;
  VerbsMirrors mirrors_;
  std::size_t writing_ = 0;
  bool ended_ = false;  // in order
  std::unique_ptr<ToRegistrar> to_registrar_;
  TimerId timer_ = 0;
};

}  // namespace monarch::tensor
