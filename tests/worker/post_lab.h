#pragma once

// PostLab: the posts of two hosts, with a roster that the test tells as their daemons would.

#include <cstdint>

#include "tests/worker/servant_lab.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"
#include "worker/post/post.h"

namespace monarch::post {

class PostLab : public ServantLab<Post, PostSetup, PostReport> {
 protected:
  PostLab() : ServantLab("post.d") {}
  void complete(PostSetup& setup) override { setup.start = {1, setup.start.number + 1}; }

  // A mesh `work` of one rank on each host, and a mesh `control` on the first.
  void tell_roster(std::uint64_t number) {
    Roster roster;
    roster.term = Term(1);
    roster.number = number;
    for (const Host& host : hosts_) {
      roster.hosts.push_back({.peer = {.host = host.setup.host,
                                       .name = host.setup.host_name,
                                       .address = "127.0.0.1",
                                       .port = host.report.port,
                                       .public_key = host.setup.public_key},
                              .without_post = {}});
    }
    roster.meshes = {{.name = "work", .dims = {{"host", 2}}}, {.name = "control", .dims = {{"one", 1}}}};
    const Generation first{Term(1), 1};
    roster.runs = {{MeshId(0), Rank(0), 1, HostId(0), first, RosterState::kUp},
                   {MeshId(0), Rank(1), 1, HostId(1), first, RosterState::kUp},
                   {MeshId(1), Rank(0), 1, HostId(0), first, RosterState::kUp}};
    for (Host& host : hosts_) {
      tell(host, roster);
      do hear_report(host);
      while (host.report.roster_number != number && !HasFatalFailure());
    }
  }
};

}  // namespace monarch::post
