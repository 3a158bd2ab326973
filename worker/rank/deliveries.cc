#include "worker/rank/deliveries.h"

#include <utility>

#include "transport/base/text.h"
#include "worker/rank/actor_thread.h"

namespace monarch {

monarch_delivery_v1* Deliveries::add(std::uint64_t id, const DoorThread::Connection& by, ActorThread* actor,
                                     const DoorBody& arguments) {
  auto delivery = std::make_unique<monarch_delivery_v1>();
  delivery->of = this;
  delivery->id = id;
  delivery->by = by;
  delivery->actor = actor;
  delivery->arguments = arguments.readers();
  delivery->reading = arguments.reading();
  monarch_delivery_v1* const added = delivery.get();
  const std::lock_guard lock(mutex_);
  open_.insert_or_assign({by.get(), id}, std::move(delivery));
  return added;
}

namespace {

// Its middle is left out where it is too long: what is at its end says most, and what is at its beginning says of what.
void shorten(std::string& words) {
  constexpr std::string_view kLeftOut = " [... ] ";
  constexpr std::size_t kBeginning = 4U << 10U;
  if (words.size() <= kOutcomeTextBytes) return;
  constexpr std::size_t kEnd = kOutcomeTextBytes - kBeginning - kLeftOut.size();
  words = text(std::string_view(words).substr(0, kBeginning), kLeftOut, words.substr(words.size() - kEnd));
}

}  // namespace

std::unique_ptr<monarch_delivery_v1> Deliveries::remove(monarch_delivery_v1* delivery) {
  const std::lock_guard lock(mutex_);
  auto node = open_.extract({delivery->by.get(), delivery->id});
  return node.empty() ? nullptr : std::move(node.mapped());
}

void Deliveries::answer(monarch_delivery_v1* delivery, CallOutcome outcome, const BodyPieces& value,
                        Arguments arguments) {
  const auto ended = remove(delivery);
  if (ended == nullptr) return;
  for (std::string* const words : {&outcome.type, &outcome.text, &outcome.traceback}) shorten(*words);
  const auto reading = ended->reading.lock();
  if (reading != nullptr && arguments == Arguments::kHasRead) reading->end();
  const std::shared_ptr<BodyReaders> kept = ended->arguments;
  const bool keeps = kept != nullptr && kept->is_lent() && kept->any();
  send(*ended, {.delivery = ended->id, .outcome = std::move(outcome), .keeps = keeps}, value);
  if (!keeps) return;
  kept->when_none([by = std::weak_ptr(ended->by), id = ended->id] {
    if (const auto connection = by.lock()) connection->let_go({.delivery = id});
  });
}

void Deliveries::send(const monarch_delivery_v1& ended, PostReply reply, const BodyPieces& value) {
  const std::uint64_t most = ended.by->welcome().body_bytes;
  if (most > 0 && value.bytes() > most) {
    reply.outcome.kind = OutcomeKind::kRefused;
    reply.outcome.text =
        text("it has run, and its result has ", value.bytes(), " bytes: at most ", most, " are carried");
    return (void)ended.by->send(reply, {});
  }
  const Status sent = ended.by->send(reply, value);
  if (sent.ok() || sent.error().code == ErrorCode::kGone) return;  // nobody is there to hear it
  // It cannot be sent as it is: memory or descriptors are short.
  reply.outcome = {.kind = OutcomeKind::kRemoteError,
                   .type = "monarch::NotSent",
                   .text = sent.error().message,
                   .traceback = {},
                   .generation = 0,
                   .body = {}};
  (void)ended.by->send(reply, {});
}

void Deliveries::take_back(std::uint64_t id, const DoorThread::Connection& by) {
  monarch_delivery_v1* not_begun = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find({by.get(), id});
    if (found == open_.end()) return;
    found->second->unwanted = true;
    if (found->second->actor->take_out(found->second.get())) not_begun = found->second.get();
  }
  if (not_begun == nullptr) return;
  CallOutcome cancelled;
  cancelled.kind = OutcomeKind::kCancelled;
  answer(not_begun, std::move(cancelled), {});
}

void Deliveries::ended(const DoorThread::Connection& connection) {
  const std::lock_guard lock(mutex_);
  for (auto at = open_.begin(); at != open_.end();) {
    monarch_delivery_v1& delivery = *at->second;
    const bool of_it = delivery.by == connection;
    if (of_it) delivery.unwanted = true;
    at = of_it && delivery.actor->take_out(&delivery) ? open_.erase(at) : std::next(at);
  }
}

}  // namespace monarch
