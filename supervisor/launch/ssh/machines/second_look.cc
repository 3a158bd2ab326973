#include "supervisor/launch/ssh/machines/second_look.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "supervisor/doctor/check_talk.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kSessions = 32;
constexpr std::size_t kReasonBytes = 300;  // of a host's own words

// What a host says goes into the journal: no more of it than people read.
std::string words_of(const std::string& said) { return printable(said.substr(0, kReasonBytes)); }

std::string reason_of(const LaunchFailure& failure) {
  return words_of(text(name_of(failure.kind), ": ", failure.message));
}

using Checked = std::variant<TimedAnswer, LaunchFailure>;

// In the session's thread.
Checked check(SshSession& session, RemoteOrder order, const WorkerImage* image, const CheckRequest& request,
              Duration patience, int cancel) {
  doctor::CheckTalk talk(session, std::move(order), image, {.cancel = cancel, .silence = patience});
  Checked checked = talk.ask(request);
  if (std::holds_alternative<TimedAnswer>(checked)) talk.leave();
  return checked;
}

SeenThere seen_there(const Checked& checked, std::string asked_at) {
  SeenThere seen{.asked_at = std::move(asked_at)};
  if (const auto* failure = std::get_if<LaunchFailure>(&checked)) {
    seen.no_answer_because = reason_of(*failure);
    return seen;
  }
  const CheckAnswer& answer = std::get<TimedAnswer>(checked).answer;
  seen.worker = answer.worker;
  if (!answer.calls.empty()) seen.does_not_reach_us = words_of(answer.calls.front().error);
  return seen;
}

}  // namespace

Result<std::unique_ptr<SecondLook>> SecondLook::create(EventLoop& loop, SecondLookOptions options, OnSeen on_seen) {
  std::unique_ptr<SecondLook> made(new SecondLook(loop, std::move(options), std::move(on_seen)));
  MONARCH_ASSIGN(made->pool_,
                 SshPool::create(loop, {.parallel = kSessions, .attempts = 1, .seed = made->options_.seed}));
  return made;
}

std::string SecondLook::no_answer() const { return text("no answer within ", to_text(options_.patience)); }

void SecondLook::look(HostId host, const std::vector<Peer>& peers) {
  const Instant now = loop_.now();
  const auto last = looked_.find(host);
  if (looks_.contains(host) || (last != looked_.end() && now < last->second + options_.again_after)) return;
  looked_[host] = now;
  Look& look = looks_[host];
  look.number = next_++;
  look.seen.there.no_answer_because = no_answer();
  for (const Peer& peer : peers) look.seen.from.push_back({.peer = options_.access.hosts[peer.host.value()].name});
  look.open = 1 + peers.size();
  look.timer = std::make_unique<FairTimer>(loop_);
  look.timer->start(options_.patience, [this, host](const std::string& late) { time_is_up(host, late); });
  // Answers come by the loop, never from within.
  look.tickets.push_back(ask_there(host, look.number));
  for (std::size_t i = 0; i < peers.size(); ++i) look.tickets.push_back(ask_peer(host, look.number, i, peers[i]));
}

void SecondLook::forget(HostId host) {
  const auto found = looks_.find(host);
  if (found == looks_.end()) return;
  for (const SshPool::Ticket ticket : found->second.tickets) pool_->cancel(ticket);
  looks_.erase(found);
}

SshRoute SecondLook::route_of(HostId host) const {
  SshRoute route = options_.access.hosts[host.value()].route;
  for (SshTarget& target : route) target.connect_timeout = std::min(target.connect_timeout, options_.patience);
  return route;
}

RemoteOrder SecondLook::order_of(HostId host) const {
  RemoteOrder order = options_.access.order(RemotePurpose::kCheck);
  order.mark = {
      .job_uuid = options_.job.to_text(), .host_name = options_.access.hosts[host.value()].name, .job_id = {}};
  return order;
}

SshPool::Ticket SecondLook::ask_there(HostId host, std::uint64_t number) {
  CheckRequest request{.life = options_.patience * 2, .patience = options_.patience / 2};
  request.worker = WorkerMarks{.job_uuid = options_.job.to_text(), .host = options_.access.hosts[host.value()].name};
  auto talk = [this, host, number, request, order = order_of(host), image = options_.access.image,
               address = options_.address, port = options_.port,
               patience = options_.patience](SshSession& session, int cancel) mutable -> std::function<void()> {
    if (address.empty()) {
      if (auto own = session.local_address(); own.ok()) address = std::move(*own);
    }
    std::string asked_at;
    if (port != 0 && !address.empty()) {
      request.calls.push_back({.name = "the supervisor", .address = address, .port = port});
      asked_at = text(address, " port ", port);
    }
    const Checked checked = check(session, std::move(order), image.get(), request, patience, cancel);
    return [this, host, number, there = seen_there(checked, std::move(asked_at))] {
      answered(host, number, [&there](SecondPath& seen) { seen.there = there; });
    };
  };
  return pool_->submit({.route = route_of(host),
                        .talk = std::move(talk),
                        .on_failed = [this, host, number](const LaunchFailure& failure) {
                          answered(host, number,
                                   [&failure](SecondPath& seen) { seen.there.no_answer_because = reason_of(failure); });
                        }});
}

SshPool::Ticket SecondLook::ask_peer(HostId host, std::uint64_t number, std::size_t place, const Peer& peer) {
  const SshTarget& target = options_.access.hosts[host.value()].route.back();
  CheckRequest request{
      .words = {.word = {}, .answer = "SSH-"}, .life = options_.patience * 2, .patience = options_.patience / 2};
  request.calls.push_back({.name = target.name, .address = peer.suspect_address, .port = target.port});
  auto talk = [this, host, number, place, request, order = order_of(peer.host), image = options_.access.image,
               patience = options_.patience](SshSession& session, int cancel) mutable -> std::function<void()> {
    const Checked checked = check(session, std::move(order), image.get(), request, patience, cancel);
    const auto* answer = std::get_if<TimedAnswer>(&checked);
    const bool asked = answer != nullptr && !answer->answer.calls.empty();
    return [this, host, number, place, asked, error = asked ? answer->answer.calls.front().error : std::string()] {
      answered(host, number, [&](SecondPath& seen) {
        seen.from[place].asked = asked;
        seen.from[place].does_not_answer = words_of(error);
      });
    };
  };
  return pool_->submit(
      {.route = route_of(peer.host), .talk = std::move(talk), .on_failed = [this, host, number](const LaunchFailure&) {
         answered(host, number, [](SecondPath&) {});  // it is not asked, then
       }});
}

void SecondLook::answered(HostId host, std::uint64_t number, const std::function<void(SecondPath&)>& note) {
  const auto found = looks_.find(host);
  if (found == looks_.end() || found->second.number != number) return;
  note(found->second.seen);
  // What others say of it adds nothing to that.
  if (--found->second.open > 0 && !worker_is_gone(found->second.seen)) return;
  tell(host);
}

void SecondLook::time_is_up(HostId host, const std::string& late) {
  std::string& why = looks_.at(host).seen.there.no_answer_because;
  if (why == no_answer()) why += late;
  tell(host);
}

void SecondLook::tell(HostId host) {
  const SecondPath seen = std::move(looks_.at(host).seen);
  forget(host);  // who has not answered by now
  on_seen_(host, seen);
}

}  // namespace monarch
