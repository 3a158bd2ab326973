#pragma once

// BodyLinks: beside the connections of PeerLinks, those by which large bodies go (body_stream.h): one for each way
// between two hosts, opened when a body is large enough, by whoever has dialled. What leads to one is said by
// PeerLinks, which is encrypted and knows who says it: where the other listens, and a secret for that one connection.
//
// Nothing it is given is sure to arrive; what does not is told.
//
// Thread: the loop's. Lifetime: within that of the loop and the pool; a handler must not destroy it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/peer.h"
#include "transport/messages/post.h"
#include "transport/peers/body_stream.h"
#include "transport/wire/host_socket.h"

namespace monarch {

class BodyLinks {
 public:
  static constexpr std::size_t kStrangers =
      16;  // who have come and not said whose offer they take; the next has the place of the first
  static constexpr Duration kPatience = Duration::seconds(5);
  static constexpr std::uint64_t kQueueBytes = 256U << 20U;  // with so many that wait no more go that way
  static constexpr Duration kAgain = Duration::seconds(1);   // after one that did not come about, or was lost

  struct Options {
    std::string address;  // numeric: where it listens
    std::uint16_t first_port = 0;
    std::uint16_t last_port = 0;
    std::uint64_t most = 0;  // bytes of one body
    std::string carries = "large bodies of calls";
    bool with_aes = BodyCipher::has_aes();
  };
  struct Handlers {
    std::function<void(HostId, PeerVia, BodyStream::Arrived&&)> on_body;
    // What was on its way there, or from there, does not arrive.
    std::function<void(HostId, PeerVia)> on_lost;
    std::function<void(HostId, PeerVia, const BodyLinkWord&)> say;
    std::function<std::string(HostId)> address_of;  // empty: nobody knows
    // Optional. Where there is one, bodies are handed over as they come (BodyStream::Part); then on_body, without
    // memory. It must not use the links.
    std::function<void(HostId, PeerVia, const BodyStream::Part&)> on_part = {};
  };

  BodyLinks(EventLoop& loop, MemoryPool& pool, Options options, Handlers handlers);
  BodyLinks(const BodyLinks&) = delete;
  BodyLinks& operator=(const BodyLinks&) = delete;
  ~BodyLinks();

  // Which one goes there; nothing: there is none yet, and one is opened; or too much waits to go by it.
  std::optional<std::uint64_t> link_to(HostId host, PeerVia via);
  // Of link_to(). Its number there is next_body().
  std::uint64_t next_body() const { return next_body_; }
  // `bytes`: of what `memory` keeps until they have gone.
  void send(HostId host, PeerVia via, std::string_view bytes, std::shared_ptr<const void> memory);
  void send(HostId host, PeerVia via, std::shared_ptr<const MappedMemory> body) {
    const std::string_view bytes = body->bytes();
    send(host, via, bytes, std::move(body));
  }
  // By a number that the other side gave.
  void send(HostId host, PeerVia via, std::uint64_t number, std::shared_ptr<const MappedMemory> body);
  // Whether what goes by that one may still arrive.
  bool comes_by(HostId host, PeerVia via, std::uint64_t link) const;
  void heard(HostId from, PeerVia via, const BodyLinkWord& word);
  // The connection that it is beside has ended: so has it.
  void drop(HostId host, PeerVia via);
  // While it rests nobody new is let in, and nobody is offered a new one: descriptors are needed for what is there.
  void rest(bool rests);

 private:
  using Way = std::pair<HostId, PeerVia>;
  enum class Phase : std::uint8_t { kConnecting, kProving, kUp };
  struct Link {
    std::uint64_t id = 0;
    Phase phase = Phase::kConnecting;
    std::string name;  // the first it says, where it dials
    std::string secret;
    bool with_aes = false;
    UniqueFd socket;  // while it connects
    std::unique_ptr<BodyStream> stream;
    WatchId watch = 0;
    Interest interest = Interest::kRead;
    TimerId patience = 0;
  };
  struct Offer {
    HostId host;
    std::uint64_t id = 0;
    std::string secret;
    bool with_aes = false;
    TimerId patience = 0;
  };
  struct Stranger {
    UniqueFd socket;
    std::string name;  // as far as it is here
    WatchId watch = 0;
    TimerId patience = 0;
  };

  void want(const Way& way);
  void offer(HostId host, bool with_aes);
  bool listen();
  void look_at_listener();
  void accept();
  void hear_stranger(std::uint64_t number);
  void drop_stranger(std::uint64_t number);
  void dial(HostId host, const BodyLinkWord& offered);
  void begin(const Way& way, Link& link, bool dials);
  void ready(const Way& way, std::uint64_t id, Readiness readiness);
  void go_on(const Way& way, Link& link, Readiness readiness);
  Status connect(const Way& way, Link& link);
  void look_at_interest(Link& link);
  void lose(const Way& way, const std::string& why);
  Link* find(const Way& way, std::uint64_t id);

  EventLoop& loop_;
  MemoryPool& pool_;
  const Options options_;
  const Handlers handlers_;
  HostListener listener_;
  WatchId listener_watch_ = 0;
  TimerId accept_timer_ = 0;  // descriptors are short
  bool rests_ = false;
  bool refused_ = false;  // it cannot listen, which was said
  std::map<Way, Link> links_;
  std::map<Way, Instant> again_;         // not before that
  std::map<std::string, Offer> offers_;  // by name
  std::map<std::uint64_t, Stranger> strangers_;
  std::uint64_t next_stranger_ = 1;
  std::uint64_t next_body_ = 1;
};

}  // namespace monarch
