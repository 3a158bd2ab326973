#pragma once

// OwnerCore: which slot a publisher writes its next version into, and when. Versions go into the slots by turns.
// Readers say that they read one, and that they are done; who does is waited for, but no longer than `patience`: that
// gives slow readers a chance, and proves nothing. A slot that somebody has mapped for good, who was given it, is left
// to him; where too many are left, the links of those that have the oldest end, and the publisher goes on. So long is
// also waited for the other publishers of a gang: one that is ahead of them by a version would else write over the last
// that all of them hold, and readers would get none.
//
//   idle --Begin--> waiting --(no reader, all hold the newest; or patience)--> writing --Commit, Abandon--> idle
//
// Thread: a value of the owner's; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/time.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

struct OwnerOptions {
  std::size_t slots = 2;
  Duration patience = Duration::seconds(2);
  std::size_t left = 2;  // slots that may be left to readers at a time; one more ends the links of the oldest
};

namespace owner_event {

struct Begin {  // of the next version; it is answered with Write or Refuse
  std::uint64_t number = 0;
};
struct Commit {};   // everything is in the slot
struct Abandon {};  // nothing is published
struct Reading {
  LinkNumber link = 0;
  std::uint64_t number = 0;
};
struct Read {  // or has given up
  LinkNumber link = 0;
  std::uint64_t number = 0;
};
struct Given {  // the memory of that version, over that link
  LinkNumber link = 0;
  std::uint64_t number = 0;
};
struct Mapped {  // for as long as he likes
  LinkNumber link = 0;
  std::uint64_t number = 0;
};
struct Unmapped {
  LinkNumber link = 0;
  std::uint64_t number = 0;
};
struct LinkLeft {
  LinkNumber link = 0;
};
struct AllHold {  // that version: so do all other publishers of the gang
  std::uint64_t number = 0;
};
struct Tick {};

}  // namespace owner_event

using OwnerEvent = std::variant<owner_event::Begin, owner_event::Commit, owner_event::Abandon, owner_event::Reading,
                                owner_event::Read, owner_event::Given, owner_event::Mapped, owner_event::Unmapped,
                                owner_event::LinkLeft, owner_event::AllHold, owner_event::Tick>;

namespace owner_action {

struct Renew {  // the slot's memory is left to who has it, and the slot gets other memory
  std::size_t slot = 0;
};
struct Write {  // it holds no version from now on
  std::size_t slot = 0;
};
struct Refuse {
  std::string text;
};
struct EndLink {  // its reader has the memory, and is served no more
  LinkNumber link = 0;
  std::string why;
};
struct Offer {  // the slot holds that version
  std::size_t slot = 0;
  std::uint64_t number = 0;
};

}  // namespace owner_action

using OwnerAction = std::variant<owner_action::Renew, owner_action::Write, owner_action::Refuse, owner_action::EndLink,
                                 owner_action::Offer>;
using OwnerActions = std::vector<OwnerAction>;

class OwnerCore {
 public:
  explicit OwnerCore(const OwnerOptions& options) : options_(options), slots_(options.slots) {}

  OwnerActions step(const OwnerEvent& event, Instant now);
  Instant next_due() const { return wanted_ ? wanted_->due : Instant::never(); }
  // The slot that holds that version.
  std::optional<std::size_t> slot_of(std::uint64_t number) const;

 private:
  struct Slot {
    std::optional<std::uint64_t> number;
    std::set<LinkNumber> readers;
    std::set<LinkNumber> given;
    std::set<LinkNumber> mapped;  // some of those
  };
  struct Wanted {
    std::uint64_t number = 0;
    std::size_t slot = 0;
    Instant due;
  };
  struct Writing {
    std::uint64_t number = 0;
    std::size_t slot = 0;
  };

  void on(const owner_event::Begin& event);
  void on(const owner_event::Commit& event);
  void on(const owner_event::Abandon& event);
  void on(const owner_event::Reading& event);
  void on(const owner_event::Read& event);
  void on(const owner_event::Given& event);
  void on(const owner_event::Mapped& event);
  void on(const owner_event::Unmapped& event);
  void on(const owner_event::LinkLeft& event);
  void on(const owner_event::AllHold& event);
  void on(const owner_event::Tick&) {}
  void try_to_write();
  void write(std::size_t slot);
  void end_oldest_left();
  void refuse(std::string text) { out_.emplace_back(owner_action::Refuse{std::move(text)}); }

  const OwnerOptions options_;
  OwnerActions out_;
  Instant now_;
  std::vector<Slot> slots_;
  std::optional<std::uint64_t> newest_;
  std::optional<std::uint64_t> all_hold_;
  std::optional<Wanted> wanted_;
  std::optional<Writing> writing_;
  std::map<std::uint64_t, std::set<LinkNumber>> left_;  // versions in memory that was left, and who has it
};

}  // namespace monarch::tensor
