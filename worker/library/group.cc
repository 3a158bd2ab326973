#include "worker/library/group.h"

#include <algorithm>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/tensor/core/hello.h"
#include "worker/library/roster_names.h"
#include "worker/library/tensor_words.h"

namespace monarch {

namespace {

constexpr Duration kGiveUpLook = Duration::milliseconds(20);

Error no_group(std::string words) { return {ErrorCode::kInvalid, std::move(words)}; }

// A question for the card of the first member, which ends with whoever asks.
class FirstAsk {
 public:
  explicit FirstAsk(CardAsks& asks) : asks_(asks) {}
  FirstAsk(const FirstAsk&) = delete;
  FirstAsk& operator=(const FirstAsk&) = delete;
  ~FirstAsk() { take_back(); }

  std::uint64_t answered() const { return question_; }
  void ask(const tensor::GroupNews::Question& question, const tensor::GroupMember& first, CardAsks::Handler handler) {
    take_back();
    question_ = question.number;
    asked_ = asks_.ask(first.mesh, first.rank, question.since, std::move(handler));
  }

 private:
  void take_back() {
    if (asked_ != 0) asks_.take_back(std::exchange(asked_, 0));
  }

  CardAsks& asks_;
  std::uint64_t question_ = 0;
  std::uint64_t asked_ = 0;  // 0: nothing
};

// Nobody has said anything before the owner's thread has looked at the call.
std::string still_waits(const tensor::GroupNews::Told& told) {
  return told.waits.empty() ? "no member has answered yet" : told.waits;
}

// With the secret by which this start of this rank proves whom it is.
Result<tensor::Card> card_for_this_rank(const CardAsks::Answer& answer) {
  MONARCH_ASSIGN(const tensor::Card card, tensor::parse_card(answer.text));
  if (answer.personal.size() != tensor::kSecretBytes) return no_group("its card has no secret for this rank");
  return with_secret(card, answer.personal);
}

// Told on the thread of the door.
CardAsks::Handler tell_owner_of_first(tensor::OwnerThread& owner, tensor::GroupNewsPtr news,
                                      const tensor::GroupMember& first) {
  return [&owner, news = std::move(news), first](const Result<CardAsks::Answer>& answer) {
    const auto card = answer.ok() ? card_for_this_rank(*answer) : Result<tensor::Card>(answer.error());
    if (card.ok()) return owner.give(tensor::owner_order::FoundFirst{news, answer->generation, *card});
    news->tell([&](tensor::GroupNews::Told& told) {
      told.refused =
          Error{ErrorCode::kGone, text(first.name(), ", which holds it, is not found: ", card.error().message)};
    });
  };
}

}  // namespace

Result<tensor::GroupMembers> read_members(const std::string& name, const std::vector<GroupWish>& wishes,
                                          const PostWelcome& post) {
  if (name.empty() || name.size() > tensor::kPublicationNameBytes) {
    return no_group(text("a group's name has 1 to ", tensor::kPublicationNameBytes, " bytes"));
  }
  tensor::GroupMembers members;
  for (const GroupWish& wish : wishes) {
    const RosterMesh* const mesh = find_mesh(post, wish.mesh);
    if (mesh == nullptr) return no_mesh(post, wish.mesh);
    const std::uint32_t size = size_of(*mesh);
    for (std::uint32_t index = 0; index < (wish.all ? size : wish.ranks.size()); ++index) {
      const tensor::GroupMember member{wish.mesh, wish.all ? index : wish.ranks[index]};
      if (member.rank >= size) {
        return no_group(text("group ", printable(name), ": ", wish.mesh, " has no rank ", member.rank,
                             "; the nearest is ", size - 1));
      }
      if (members.find(member)) {
        return no_group(text("group ", printable(name), ": ", member.name(), " is a member twice"));
      }
      if (!members.add(member)) {
        return no_group(text("group ", printable(name), " has more than ", tensor::kMostMembers,
                             " members, or they are not in ", tensor::kMostMemberRuns, " rows of neighbours"));
      }
    }
  }
  if (members.size() == 0) return no_group(text("group ", printable(name), " has no members"));
  return members;
}

Group::Group(tensor::OwnerThread& owner, std::uint32_t rank, tensor::GroupMembers members, tensor::GroupNewsPtr news,
             BoundPort port)
    : owner_(owner),
      rank_(rank),
      members_(std::move(members)),
      news_(std::move(news)),
      meeting_(*news_->told().meeting),
      port_(std::move(port)) {}

std::function<void(const std::string& words)> Group::say_who_is_missing(const std::string& name) {
  return [name, begun = boot_now()](const std::string& words) {
    say_line(text("monarch: group ", name, " has not met since ", to_text(boot_now() - begun), ": ", words));
  };
}

Result<std::unique_ptr<Group>> Group::meet(const Place& place, const std::string& name,
                                           const tensor::GroupMembers& members, const Options& options) {
  const tensor::GroupMember self{place.self.mesh, place.self.rank};
  const auto rank = members.find(self);
  if (!rank) return no_group(text("group ", printable(name), ": ", self.name(), " is none of ", members.text()));
  if (options.offer.size() > tensor::kOfferBytes) {
    return no_group(text("group ", printable(name), ": an offer of ", options.offer.size(), " bytes; at most ",
                         tensor::kOfferBytes, " are"));
  }
  BoundPort port;
  tensor::GroupOffer offer;
  if (*rank == 0) {
    auto bound = bind_free_port(place.post.first_port, place.post.last_port);
    if (!bound.ok()) return Error{bound.error().code, text("group ", printable(name), ": ", bound.error().message)};
    port = std::move(*bound);
    offer = {place.post.address, port.number, options.offer};
  }
  const auto news = std::make_shared<tensor::GroupNews>();
  place.owner.give(tensor::owner_order::Meet{name, members, *rank, std::move(offer), news});
  const Instant begun = boot_now();
  const Instant until = options.timeout ? begun + *options.timeout : Instant::never();
  Instant say_at = options.waiting ? begun + options.waiting_every : Instant::never();
  FirstAsk first(place.asks);
  for (;;) {
    const auto has_news = [&first](const tensor::GroupNews::Told& told) {
      return told.meeting || told.refused || told.question.number > first.answered();
    };
    const Instant look_at = options.gives_up ? boot_now() + kGiveUpLook : Instant::never();
    const tensor::GroupNews::Told told = news->wait(has_news, std::min({until, say_at, look_at}));
    if (told.meeting) break;
    const bool gives_up = options.gives_up && options.gives_up();
    if (told.refused || gives_up || boot_now() >= until) {
      place.owner.give(tensor::owner_order::LeaveGroup{news});
      if (gives_up)
        return Error{ErrorCode::kGone, text("group ", printable(name), " is given up: ", still_waits(told))};
      if (told.refused) return Error{told.refused->code, text("group ", printable(name), ": ", told.refused->message)};
      return Error{ErrorCode::kTimeout, text("group ", printable(name), " has not met within ",
                                             to_text(*options.timeout), ": ", still_waits(told))};
    }
    if (told.question.number > first.answered()) {
      first.ask(told.question, members.at(0), tell_owner_of_first(place.owner, news, members.at(0)));
    } else if (boot_now() >= say_at) {
      say_at = boot_now() + options.waiting_every;
      options.waiting(still_waits(told));
    }
  }
  return std::unique_ptr<Group>(new Group(place.owner, *rank, members, news, std::move(port)));
}

Result<std::string> Group::wait_lost(Instant until) {
  const auto told = news_->wait([](const tensor::GroupNews::Told& now) { return now.lost || now.left; }, until);
  if (told.lost) return *told.lost;
  if (told.left) return Error{ErrorCode::kGone, "this rank has left the group"};
  return Error{ErrorCode::kTimeout, "the group is not lost"};
}

void Group::leave() {
  bool left = false;
  news_->tell([&left](tensor::GroupNews::Told& told) { left = std::exchange(told.left, true); });
  if (!left) owner_.give(tensor::owner_order::LeaveGroup{news_});
}

}  // namespace monarch
