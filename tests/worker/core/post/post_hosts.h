#pragma once

// PostCoreTest: the posts of two hosts, side by side; what goes from one to the other is carried by hand.
//
// Thread: a test's.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/core/post/post_core.h"

namespace monarch {

inline constexpr DoorId kCaller{1};
inline constexpr DoorId kServer{2};
inline constexpr RankId kFirst{MeshId(0), Rank(0)};

// A mesh `work` of four ranks, the first two on host 0 and the others on host 1, and a mesh `control` on host 0.
inline Roster some_roster(std::uint64_t number = 1) {
  Roster roster;
  roster.term = Term(1);
  roster.number = number;
  for (std::uint32_t host = 0; host < 2; ++host) {
    roster.hosts.push_back({.peer = {.host = HostId(host),
                                     .name = "h" + std::to_string(host),
                                     .address = "10.0.0.1",
                                     .port = static_cast<std::uint16_t>(1'000 + host),
                                     .public_key = "key"},
                            .without_post = {}});
  }
  roster.meshes = {{.name = "work", .dims = {{"host", 2}, {"gpu", 2}}}, {.name = "control", .dims = {{"one", 1}}}};
  const Generation first{Term(1), 1};
  roster.runs = {{MeshId(0), Rank(0), 2, HostId(0), first, RosterState::kUp},
                 {MeshId(0), Rank(2), 2, HostId(1), first, RosterState::kUp},
                 {MeshId(1), Rank(0), 1, HostId(0), first, RosterState::kUp}};
  return roster;
}

inline PostHello hello_of(const std::string& mesh, std::uint32_t rank, bool serves, std::uint64_t generation = 1) {
  PostHello hello;
  hello.mesh = mesh;
  hello.rank = rank;
  hello.generation = generation;
  hello.serves = serves;
  if (serves) hello.actors = {{"greeter", "Greeter", {{"say_hello", "s->s"}, {"any", "*"}}}};
  return hello;
}

inline PostCall call_of(std::uint64_t id, std::vector<std::uint32_t> ranks, const std::string& endpoint = "say_hello") {
  PostCall call;
  call.id = id;
  call.mesh = "work";
  for (const std::uint32_t rank : ranks) call.ranks.push_back({.first = rank, .count = 1, .step = 1});
  call.target = {"greeter", endpoint, "s->s"};
  call.body = {.bytes = 10, .way = BodyWay::kNone, .here = {}, .at = BodyId(100 + id)};
  return call;
}

class PostCoreTest : public ::testing::Test {
 protected:
  struct Host {
    explicit Host(std::uint32_t number, PostLimits limits = {}, bool one_machine = false)
        : core({.host = HostId(number),
                .host_name = "h" + std::to_string(number),
                .start = {1, 1},
                .one_machine = one_machine,
                .limits = limits}) {}
    PostCore core;
    std::vector<PostAction> done;  // all but what goes to peers
    std::deque<post_action::ToPeer> to_peer;
  };

  explicit PostCoreTest(PostLimits limits = {}, bool one_machine = false) {
    for (std::uint32_t host = 0; host < 2; ++host) hosts_.emplace_back(host, limits, one_machine);
  }

  void feed(std::uint32_t host, const PostEvent& event) {
    keep(host, hosts_[host].core.step(event, now_));
    keep(host, hosts_[host].core.end_turn());
  }
  void keep(std::uint32_t host, PostActions actions) {
    for (PostAction& action : actions) {
      if (auto* message = std::get_if<post_action::ToPeer>(&action)) {
        hosts_[host].to_peer.push_back(std::move(*message));
      } else {
        hosts_[host].done.push_back(std::move(action));
      }
    }
  }
  void say(std::uint32_t host, DoorId door, post_event::DoorMessage message) {
    feed(host, post_event::DoorSaid{door, std::move(message)});
  }
  // Both hosts know the roster; a caller and the ranks of both are at their doors.
  void begin() {
    for (std::uint32_t host = 0; host < 2; ++host) feed(host, post_event::RosterCame{some_roster()});
    say(0, kCaller, hello_of("control", 0, false));
    say(0, kServer, hello_of("work", 0, true));
    say(1, kServer, hello_of("work", 2, true));
    for (Host& host : hosts_) host.done.clear();
  }
  // What is on its way between the hosts comes.
  void carry() {
    for (bool more = true; more;) {
      more = false;
      for (std::uint32_t host = 0; host < 2; ++host) {
        while (!hosts_[host].to_peer.empty()) {
          const post_action::ToPeer message = std::move(hosts_[host].to_peer.front());
          hosts_[host].to_peer.pop_front();
          feed(message.host.value(), post_event::PeerSaid{HostId(host), message.message});
          more = true;
        }
      }
    }
  }
  void connect() {
    feed(0, post_event::PeerUp{HostId(1)});
    carry();
  }
  template <class Message>
  std::vector<Message> told(std::uint32_t host, DoorId door) {
    std::vector<Message> all;
    for (const PostAction& action : hosts_[host].done) {
      const auto* to = std::get_if<post_action::ToDoor>(&action);
      if (to == nullptr || to->door != door) continue;
      if (const auto* message = std::get_if<Message>(&to->message)) all.push_back(*message);
    }
    return all;
  }
  template <class Action>
  std::vector<Action> acts(std::uint32_t host) {
    std::vector<Action> all;
    for (const PostAction& action : hosts_[host].done) {
      if (const auto* one = std::get_if<Action>(&action)) all.push_back(*one);
    }
    return all;
  }
  std::vector<std::string> closed(std::uint32_t host) {
    std::vector<std::string> all;
    for (const auto& one : acts<post_action::CloseDoor>(host)) all.push_back(one.why);
    return all;
  }
  void answer(std::uint32_t host, std::uint64_t delivery, OutcomeKind kind = OutcomeKind::kValue) {
    PostReply reply;
    reply.delivery = delivery;
    reply.outcome.kind = kind;
    say(host, kServer, reply);
  }
  // Its kind and its text.
  static std::pair<OutcomeKind, std::string> end_of(const PostAnswer& answer) {
    return {answer.outcome.kind, answer.outcome.text};
  }
  using End = std::pair<OutcomeKind, std::string>;

  Instant now_ = Instant::since_boot(Duration::seconds(100));
  std::deque<Host> hosts_;
};

}  // namespace monarch
