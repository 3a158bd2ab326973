#include "transport/tensor/owner_thread.h"

#include <algorithm>
#include <map>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/machine.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/loop/no_signals.h"
#include "transport/loop/take_within.h"
#include "transport/tensor/group_seat.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kOrders = 65'536;  // of all publishers of a rank: each waits for an answer to its own
constexpr std::size_t kCards = 1;
constexpr Duration kStartPatience = Duration::seconds(10);

using Started = std::shared_ptr<Inbox<Result<Card>>>;  // owners: who starts it, and the thread

// What it has was made by its thread and is used there alone.
class OwnerBody {
 public:
  OwnerBody(EventLoop& loop, Inbox<OwnerOrder>& orders, OwnerPlace place, const Started& started)
      : loop_(loop), orders_(orders) {
    auto server = OwnerServer::start(loop, std::move(place));
    Result<Card> said = server.ok() ? Result<Card>((*server)->card()) : Result<Card>(server.error());
    if (server.ok()) server_ = std::move(*server);
    if (server_) held_ = std::make_unique<HeldGroups>(loop_, *server_, verdicts_, own());
    MONARCH_ASSERT(started->put(std::move(said)));
  }

  void run() { loop_.run(); }
  void take_orders() {
    for (OwnerOrder& order : orders_.take_all()) {
      if (server_ == nullptr) continue;
      std::visit([this](auto& one) { take(one); }, order);
    }
  }

 private:
  HeldGroups::Own own() {
    return {.tell =
                [this](const std::string& name, const MemberEvent& event) {
                  const auto seat = seats_.find(name);
                  if (seat != seats_.end()) seat->second->hear(event);
                },
            .called = [this](const std::string& name) { look_who_is_first(name); }};
  }

  // Who takes this rank for the first of a group that it calls another for hears that both disagree, as this rank does.
  void look_who_is_first(const std::string& name) {
    const auto seat = seats_.find(name);
    if (seat == seats_.end() || !seat->second->calls_elsewhere() || !held_->is_called(name)) return;
    held_->call(name, seat->second->number(), seat->second->members(), {});
  }

  Publication* find(const PublisherWords& of) {
    const auto found = publications_.find(of);
    return found == publications_.end() ? nullptr : found->second.get();
  }

  void take(owner_order::Open& order) {
    const auto tell = [words = order.words](PublisherWord word) { MONARCH_ASSERT(words->put(std::move(word))); };
    const auto is_taken = [&](const auto& one) { return one.second->name() == order.options.name; };
    if (std::any_of(publications_.begin(), publications_.end(), is_taken)) {
      return tell(publisher_word::Unfit{text("this rank publishes ", order.options.name, " already")});
    }
    auto& made = publications_[order.words];
    made = std::make_unique<Publication>(loop_, *server_, order.options, tell);
    if (registrar_) made->found(*registrar_);
  }
  void take(const owner_order::Begin& order) {
    if (Publication* const publication = find(order.of)) publication->begin(order.number);
  }
  void take(owner_order::Commit& order) {
    if (Publication* const publication = find(order.of)) publication->commit(std::move(order.memory), order.index);
  }
  void take(const owner_order::Abandon& order) {
    if (Publication* const publication = find(order.of)) publication->abandon(order.keeps);
  }
  void take(const owner_order::End& order) {
    if (Publication* const publication = find(order.of)) publication->end();
  }
  void take(const owner_order::Close& order) { publications_.erase(order.of); }
  void take(owner_order::Found& order) {
    registrar_ = std::move(order.registrar);
    for (const auto& [of, publication] : publications_) publication->found(*registrar_);
  }

  // One that has another list leaves the group that its name was, and is in another.
  void take(owner_order::Meet& order) {
    auto& seat = seats_[order.name];
    if (seat && seat->members() != order.members) seat.reset();
    if (!seat) {
      GroupMemberOptions options{.members = order.members, .self = order.self, .number = calls_};
      seat = std::make_unique<GroupSeat>(loop_, *server_, *held_, order.name, std::move(options));
      for (const auto& [ranks, verdict] : verdicts_.all()) seat->failed(verdict);
    }
    seat->call(order.offer, order.news);
    calls_ = std::max(calls_, seat->number());
    look_who_is_first(order.name);
  }
  void take(owner_order::FoundFirst& order) {
    for (const auto& [name, seat] : seats_) {
      if (seat->news() == order.of) return seat->found(order.generation, std::move(order.card));
    }
  }
  // Of one that has called again since, the later call stays.
  void take(const owner_order::LeaveGroup& order) {
    std::erase_if(seats_, [this, &order](const auto& one) {
      if (one.second->news() != order.of) return false;
      calls_ = std::max(calls_, one.second->number());
      return true;
    });
  }
  void take(const owner_order::Failed& order) {
    if (!verdicts_.add(order.verdict)) return;
    held_->failed(order.verdict);
    for (const auto& [name, seat] : seats_) seat->failed(order.verdict);
  }

  EventLoop& loop_;
  Inbox<OwnerOrder>& orders_;
  std::unique_ptr<OwnerServer> server_;  // nothing: it could not listen
  std::optional<Card> registrar_;
  std::map<PublisherWords, std::unique_ptr<Publication>> publications_;
  RosterVerdicts verdicts_;
  std::unique_ptr<HeldGroups> held_;
  std::map<std::string, std::unique_ptr<GroupSeat>> seats_;
  std::uint64_t calls_ = 0;  // for groups, of this process
};

}  // namespace

Result<std::unique_ptr<OwnerThread>> OwnerThread::start(OwnerPlace place) {
  place.key = random_bytes(kPersonalSecretBytes);
  std::unique_ptr<OwnerThread> made(new OwnerThread(place.rank, place.key));
  MONARCH_ASSIGN(auto inbox, Inbox<Result<Card>>::create(kCards));
  const Started started = std::move(inbox);
  {
    const NoSignals none;
    MONARCH_ASSIGN(made->thread_,
                   LoopThread<OwnerOrder>::start(
                       kOrders, [place = std::move(place), started](EventLoop& loop, Inbox<OwnerOrder>& orders) {
                         return OwnerBody(loop, orders, place, started);
                       }));
  }
  auto said = take_within(*started, boot_now() + kStartPatience);
  if (said.empty()) return Error{ErrorCode::kTimeout, "the thread for readers of tensors has not begun"};
  MONARCH_ASSIGN(made->card_, std::move(said.front()));
  return made;
}

void OwnerThread::give(OwnerOrder order) { MONARCH_ASSERT(thread_->put(std::move(order))); }

}  // namespace monarch::tensor
