#pragma once

// Group: this rank in one epoch of a group. What another rank of it needs to find the first one, and whether the epoch
// is lost.
//
// Thread: any. Lifetime: within that of the session. The destructor leaves the group, which ends the epoch for all.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "transport/tensor/core/group.h"
#include "transport/tensor/group_news.h"
#include "transport/tensor/owner_thread.h"
#include "transport/wire/bound_port.h"
#include "worker/library/card_asks.h"
#include "worker/rank/rank_manifest.h"

namespace monarch {

// Members of a mesh, in this order.
struct GroupWish {
  std::string mesh;
  std::vector<std::uint32_t> ranks;
  bool all = false;  // ranks of it
};

// kInvalid, kNotFound: they are none, or one of them is named twice.
Result<tensor::GroupMembers> read_members(const std::string& name, const std::vector<GroupWish>& wishes,
                                          const PostWelcome& post);

class Group {
 public:
  struct Options {
    std::optional<Duration> timeout;  // nothing: it waits for as long as it takes
    std::string offer;                // bytes for all, of the first member; tensor::kOfferBytes at most
    // Called again and again while members are missing.
    std::function<void(const std::string& words)> waiting;
    Duration waiting_every = Duration::seconds(30);
    // Looked at again and again: nobody is waited for any more.
    std::function<bool()> gives_up;
  };
  // For Options::waiting: says on standard error for whom the group waits since now. `name` as it is shown.
  static std::function<void(const std::string& words)> say_who_is_missing(const std::string& name);

  struct Place {
    CardAsks& asks;
    tensor::OwnerThread& owner;
    const PostWelcome& post;
    const RankPlace& self;
  };

  // kInvalid: this rank is no member, or others have another list. kTimeout: who has not called. kGone: the first
  // member has ended, and does not come back; or it was given up.
  static Result<std::unique_ptr<Group>> meet(const Place& place, const std::string& name,
                                             const tensor::GroupMembers& members, const Options& options);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { leave(); }

  std::uint32_t rank() const { return rank_; }
  const tensor::GroupMembers& members() const { return members_; }
  const tensor::GroupMeeting& meeting() const { return meeting_; }

  // What is told of it, to who waits for more than its loss.
  const tensor::GroupNewsPtr& news() const { return news_; }
  // Why, once it is.
  std::optional<std::string> lost() const { return news_->told().lost; }
  // kTimeout: it is not, by then. kGone: this rank has left it.
  Result<std::string> wait_lost(Instant until);
  // Whoever waits returns.
  void leave();

 private:
  Group(tensor::OwnerThread& owner, std::uint32_t rank, tensor::GroupMembers members, tensor::GroupNewsPtr news,
        BoundPort port);

  tensor::OwnerThread& owner_;
  const std::uint32_t rank_;
  const tensor::GroupMembers members_;
  const tensor::GroupNewsPtr news_;
  const tensor::GroupMeeting meeting_;
  const BoundPort port_;  // of the first member: held until whoever makes a store has it
};

}  // namespace monarch
