#pragma once

// RankDoor: the SEQPACKET socket at which ranks ask the vault (MONARCH_VAULT). A message is one question, with one
// descriptor where it saves; an answer is one object of JSON, with one descriptor where a checkpoint was found. Who it
// is that asks is its own word: all are processes of one user, and what counts is decided at the commit.
//
// Thread: the loop's. Lifetime: shorter than the loop's; a handler must not destroy it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/seqpacket_listener.h"
#include "worker/core/vault/vault_core.h"

namespace monarch::vault {

class RankDoor {
 public:
  static constexpr std::size_t kConnections = 1'024;  // one more is closed at once

  struct Handlers {
    std::function<void(VaultClient, std::string_view question, UniqueFd descriptor)> on_question;
    std::function<void(VaultClient)> on_left;
    std::function<bool()> make_room;  // a descriptor for who comes, where there is none: whether there is one now
  };
  static Result<std::unique_ptr<RankDoor>> open(EventLoop& loop, const std::string& path, Handlers handlers);
  RankDoor(const RankDoor&) = delete;
  RankDoor& operator=(const RankDoor&) = delete;
  ~RankDoor();

  // Of one that has left it is nothing. `descriptor` may be none.
  void answer(VaultClient client, const std::string& json, UniqueFd descriptor);

 private:
  struct Connection {
    UniqueFd socket;
    WatchId watch = 0;  // 0: descriptors are too short for what comes
    TimerId read_timer = 0;
  };
  RankDoor(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void accept(UniqueFd socket);
  void on_readable(VaultClient client);
  void read_later(VaultClient client);
  void drop(VaultClient client);

  EventLoop& loop_;
  Handlers handlers_;
  std::unique_ptr<SeqpacketListener> listener_;
  std::map<VaultClient, Connection> connections_;
  std::uint64_t next_client_ = 1;
};

}  // namespace monarch::vault
