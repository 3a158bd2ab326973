#pragma once

// OwnerServer: where readers come to a rank that publishes, the ranks of its gang to their registrar, and the members
// of a group to the first of it: listeners, the owner's half of the hello, and links. Each link of a reader or a
// publisher is of one publication; one that comes before its publication does, waits. It knows no versions: what is
// said on a link after its hello is the publication's business, or that of the groups.
//
// Thread: the loop's. Lifetime: within that of the loop; publications go first.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/core/hello.h"
#include "transport/tensor/core/link_room.h"
#include "transport/tensor/core/version.h"
#include "transport/tensor/link_socket.h"
#include "transport/tensor/slot.h"
#include "transport/tensor/stream_link.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

// Where a rank listens.
struct OwnerPlace {
  LinkRank rank;
  std::string address;           // numeric, of its host for others; empty: it is not reached from elsewhere
  std::uint16_t first_port = 0;  // 0: any
  std::uint16_t last_port = 0;
  std::string sockets;  // how the path of its socket begins, in a folder of this user's; empty: there is none
  VerbsEnd verbs{};     // by which readers READ what it publishes
  std::string key;      // of the secrets of those that publish; empty: nobody has one
};

class OwnerServer {
 public:
  // At each listener, who have not proven that they have a card: while that many are there nobody is let in, and what
  // strangers can have of this process's descriptors is no more than that. Where it may have few there are fewer.
  static constexpr std::size_t kStrangers = LinkRoom::kStrangers;
  static constexpr Duration kHelloPatience = Duration::seconds(2);

  struct Handlers {
    std::function<void(LinkNumber, const HelloAsk& peer, StreamLink::Received)> heard;
    std::function<void(LinkNumber, const HelloAsk& peer)> left;  // nothing of it is heard any more
  };

  // kBusy, kInvalid: it cannot listen; the message says where.
  static Result<std::unique_ptr<OwnerServer>> start(EventLoop& loop, OwnerPlace place);
  OwnerServer(const OwnerServer&) = delete;
  OwnerServer& operator=(const OwnerServer&) = delete;
  ~OwnerServer();

  const LinkRank& rank() const { return place_.rank; }
  const Card& card() const { return card_; }
  const VerbsEnd& verbs() const { return place_.verbs; }

  void add(const std::string& publication, Handlers handlers);
  // Of all groups, whatever their names. Without handlers their links end.
  void meet(Handlers handlers);
  // All its links end. Who asks for one that has ended in order hears that nothing more comes.
  void remove(const std::string& publication, bool ended);

  // Of a link that has ended nothing is sent.
  void send(LinkNumber link, const LinkFrame& frame, std::string behind = {});
  void send_slot(LinkNumber link, const LinkFrame& frame, std::shared_ptr<const Slot> slot);
  void send_rows(LinkNumber link, const LinkFrame& asked, std::shared_ptr<const Slot> slot);
  void send_word(LinkNumber link, const LinkFrame& asked, std::shared_ptr<const Slot> slot);
  // It is told why, if there is room for that.
  void end(LinkNumber link, const std::string& why);

 private:
  enum class Phase : std::uint8_t { kAsking, kProving, kWaiting, kReady };
  struct Mouth {
    LinkListener listener;
    WatchId watch = 0;
    std::size_t strangers = 0;
  };
  struct Link {
    Mouth* mouth = nullptr;  // of a stranger: where it came in
    std::unique_ptr<StreamLink> stream;
    Phase phase = Phase::kAsking;
    WatchId watch = 0;
    Interest interest = Interest::kRead;
    TimerId patience = 0;
    std::shared_ptr<HelloAsk> ask = std::make_shared<HelloAsk>();  // owners: this, and who hears it, who may end it
    LinkUse use = LinkUse::kWords;
    HelloAnswer answer;
    bool flushing = false;  // at the end of this turn
    bool told = false;      // it waits, and others have what it waits for
  };

  OwnerServer(EventLoop& loop, OwnerPlace place);
  Status listen();
  Status open(Mouth& mouth);
  void look_at_file();
  void accept(Mouth& mouth);
  void look_at_mouths();
  void is_no_stranger(Link& link);
  void ready(LinkNumber number, Readiness readiness);
  // False: the link has ended.
  bool hear(LinkNumber number);
  OwnerSecrets secrets() const;
  // Who hears a link that is ready; nullptr: nobody any more.
  const Handlers* handlers_of(const HelloAsk& ask) const;
  Status hear_hello(LinkNumber number, Link& link, const StreamLink::Received& word);
  // kBusy: it has no place.
  Status find_place(LinkUse use);
  void end_for_another(LinkNumber number);
  void refuse(LinkNumber number, Link& link, const Error& why);
  void count_files();
  void look_at_use(LinkNumber number, FrameKind heard);
  void settle(LinkNumber number, Link& link);
  void tell_that_others_have(const std::string& publication);
  void queued(LinkNumber number, Status status);
  void flush(LinkNumber number);
  void look_at_interest(Link& link);
  void drop(LinkNumber number);
  void drop_all(const std::function<bool(const HelloAsk& ask)>& is_one);

  EventLoop& loop_;
  const OwnerPlace place_;
  Card card_;
  Mouth on_machine_;
  Mouth for_hosts_;
  std::map<std::string, Handlers> publications_;
  Handlers meetings_;
  std::set<std::string> ended_;  // of those that were, in order
  std::map<LinkNumber, Link> links_;
  LinkRoom room_;
  LinkNumber next_ = 1;
  TimerId look_timer_ = 0;
  TimerId accept_timer_ = 0;  // descriptors were short
  Scope scope_;
};

}  // namespace monarch::tensor
