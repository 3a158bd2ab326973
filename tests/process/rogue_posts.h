#pragma once

// RoguePosts: what the rogue of the tests says to the posts of other hosts, which know its key as that of a host of the
// job, and to a rank that publishes tensors, whose card such a post gives it as to any reader.
//
// Thread: the loop's. Lifetime: within that of the loop, the context and the keys.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"
#include "transport/tensor/core/card.h"
#include "transport/zmq/context.h"
#include "transport/zmq/curve.h"
#include "transport/zmq/reconnecting_client.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

class RoguePosts {
 public:
  RoguePosts(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys, const JobUuid& job, HostId self);

  void take(Roster roster) { roster_ = std::move(roster); }
  // An attack by name, on each post that the roster has. Answers how many messages it has sent.
  //   stretch     each text and list of each message longer than it may be
  //   exaggerate  each number of each message the largest or the smallest that there is; no attack works after it
  //   forge       asks in the name of each rank of the job, of the one that is asked, of ranks that there are none of
  //   repeat      asks that name one rank as often as a message can
  //   promise     asks whose bodies are said to come by another connection, and do not
  //   thief       at each publisher: a reader's card to publish with, and every word of a link, in its place or not
  std::uint64_t attack(const std::string& name);

 private:
  struct Line {
    PeerAddress peer;
    std::unique_ptr<ReconnectingClient> client;
    LineEnds ends;
    AskNumber next = 1;
    bool open = false;
    std::vector<LineAnswer> answers;
  };

  void open_all();
  void open(Line& line);
  void hear(Line& line, const std::vector<ZmqFrame>& frames);
  void turn();
  template <class Message>
  void say(Line& line, const Message& message);
  LineAsks ask_of(Line& line, MeshId mesh, Rank rank) const;
  void ask(Line& line, LineAsks asks);
  std::uint64_t stretch(Line& line);
  std::uint64_t exaggerate(Line& line);
  std::uint64_t forge(Line& line);
  std::uint64_t repeat(Line& line);
  std::uint64_t promise(Line& line);
  std::uint64_t steal(Line& line);
  std::vector<CallerName> callers() const;

  ZmqContext& context_;
  ZmqLoop& loop_;
  const CurveKeyPair& keys_;
  const JobUuid job_;
  const HostId self_;
  Roster roster_;
  std::map<HostId, Line> lines_;
  std::uint64_t starts_ = 0;
};

}  // namespace monarch
