#pragma once

// OwnerThread: the one thread of a rank that publishes or meets others in groups: it serves readers, and hears who
// leaves a group, whatever the rank's own threads do. It takes no signals.
//
// Thread: any. Lifetime: longer than that of its publishers. The destructor ends all links and joins.

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "transport/base/result.h"
#include "transport/loop/inbox.h"
#include "transport/loop/loop_thread.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/core/group.h"
#include "transport/tensor/group_news.h"
#include "transport/tensor/held_groups.h"
#include "transport/tensor/publication.h"

namespace monarch::tensor {

// Owners: a publisher, and the owner's thread. It is also by what a publisher is known there.
using PublisherWords = std::shared_ptr<Inbox<PublisherWord>>;

namespace owner_order {

struct Open {
  PublicationOptions options;
  PublisherWords words;
};
struct Begin {
  PublisherWords of;
  std::uint64_t number = 0;
};
struct Commit {
  PublisherWords of;
  std::shared_ptr<Slot> memory;  // owners: as of publisher_word::Write
  std::optional<Index> index;
};
struct Abandon {
  PublisherWords of;
  bool keeps = false;  // the publisher keeps the memory that Write has named
};
struct End {
  PublisherWords of;
};
struct Close {
  PublisherWords of;
};
struct Found {  // the registrar of the gang: its card, with the personal secret of this rank
  Card registrar;
};
struct Meet {  // answered by `news`
  std::string name;
  GroupMembers members;
  std::uint32_t self = 0;  // its place among them
  GroupOffer offer;        // of the first
  GroupNewsPtr news;
};
struct FoundFirst {  // the card that the news ask for
  GroupNewsPtr of;
  std::uint64_t generation = 0;
  Card card;
};
struct LeaveGroup {
  GroupNewsPtr of;
};
struct Failed {
  RosterVerdict verdict;
};

}  // namespace owner_order

using OwnerOrder = std::variant<owner_order::Open, owner_order::Begin, owner_order::Commit, owner_order::Abandon,
                                owner_order::End, owner_order::Close, owner_order::Found, owner_order::Meet,
                                owner_order::FoundFirst, owner_order::LeaveGroup, owner_order::Failed>;

class OwnerThread {
 public:
  // Once it listens. The key of `place` is made here.
  static Result<std::unique_ptr<OwnerThread>> start(OwnerPlace place);
  OwnerThread(const OwnerThread&) = delete;
  OwnerThread& operator=(const OwnerThread&) = delete;

  const LinkRank& rank() const { return rank_; }
  const Card& card() const { return card_; }
  // Of the secrets of those that publish to this rank: for posts alone.
  const std::string& key() const { return key_; }
  void give(OwnerOrder order);

 private:
  OwnerThread(LinkRank rank, std::string key) : rank_(std::move(rank)), key_(std::move(key)) {}

  const LinkRank rank_;
  const std::string key_;
  Card card_;
  std::unique_ptr<LoopThread<OwnerOrder>> thread_;
};

}  // namespace monarch::tensor
