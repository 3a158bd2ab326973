#include "worker/rank/intake.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

RankActor told_actor(const std::string& name, const monarch_class_v1& of) {
  RankActor told{.name = name, .class_name = of.name, .endpoints = {}};
  for (std::uint32_t i = 0; i < of.endpoint_count; ++i) {
    const monarch_endpoint_v1& endpoint = of.endpoints[i];
    told.endpoints.push_back(
        {.name = endpoint.name, .signature = endpoint.signature, .overlaps = endpoint.at_most > 0});
  }
  told.endpoints.push_back({.name = std::string(kReadyEndpoint), .signature = "*", .overlaps = true});
  return told;
}

DoorThread::Handlers Intake::handlers(std::function<void(const std::string& why)> cut_off) {
  return {.came = [](const DoorThread::Connection&) {},
          .heard = [this](const DoorThread::Connection& by, DoorClient::Heard& heard) { this->heard(by, heard); },
          .ended = [this](const DoorThread::Connection& by, const std::string&) { deliveries_.ended(by); },
          .cut_off = std::move(cut_off)};
}

void Intake::heard(const DoorThread::Connection& by, DoorClient::Heard& heard) {
  // What a post says and this process does not know is a later one's.
  (void)route(heard.frame.header, heard.frame.payload,
              when<PostDeliver>([&](PostDeliver&& given) { deliver(by, std::move(given), heard.descriptors); }),
              when<PostTakeBack>([&](PostTakeBack&& back) { deliveries_.take_back(back.delivery, by); }));
}

void Intake::deliver(const DoorThread::Connection& by, PostDeliver given, std::vector<UniqueFd>& beside) {
  ActorThread* const actor = find_(given.target.actor);
  if (actor != nullptr && given.target.endpoint == kReadyEndpoint) {
    constexpr std::string_view kNil = "\xc0";
    return (void)by->send(PostReply{.delivery = given.delivery, .outcome = {}}, kNil);
  }
  const monarch_endpoint_v1* const endpoint = actor == nullptr ? nullptr : actor->find(given.target.endpoint);
  auto body = by->take(std::move(given.body), beside);
  // Of actors that come and go the post does not know it.
  const auto any = [](std::string_view signature) { return signature == "*"; };
  const bool fits = endpoint != nullptr && (any(endpoint->signature) || any(given.target.signature) ||
                                            given.target.signature == endpoint->signature);
  if (fits && body.ok()) {
    monarch_delivery_v1* const delivery = deliveries_.add(given.delivery, by, actor, *body);
    return actor->put({.endpoint = endpoint, .arguments = std::move(*body), .delivery = delivery});
  }
  PostReply reply;
  reply.delivery = given.delivery;
  reply.outcome.kind = OutcomeKind::kRefused;
  const std::string called = text(given.target.actor, '.', given.target.endpoint);
  if (endpoint == nullptr) {
    reply.outcome.text = text("this process has no ", called);
  } else {
    reply.outcome.text = fits
                             ? body.error().message
                             : text(called, " is ", endpoint->signature, " and was called as ", given.target.signature);
  }
  (void)by->send(std::move(reply), {});
}

}  // namespace monarch
