#pragma once

// SeqpacketListener: a unix socket at a path, mode 0600, on which processes of our own uid are accepted. Others are
// dropped and counted. It removes the path when it goes, if it is still its own, and makes it anew where somebody else
// did.
//
// Thread: the loop's. Lifetime: shorter than the loop's; its handler may not destroy it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/wire/socket_file.h"

namespace monarch {

class SeqpacketListener {
 public:
  using OnPeer = std::function<void(UniqueFd, PeerCredentials)>;
  // Somebody waits, and there is no free descriptor: whether there is one now.
  using MakeRoom = std::function<bool()>;

  // kBusy when somebody answers at `path`; a socket there at which nobody does is replaced. Two processes that replace
  // one at the same time could take it from each other: the caller holds the lock on the folder. kInvalid when the path
  // is too long or something other than a socket of ours is there.
  static Result<std::unique_ptr<SeqpacketListener>> create(EventLoop& loop, std::string path, OnPeer on_peer);
  SeqpacketListener(const SeqpacketListener&) = delete;
  SeqpacketListener& operator=(const SeqpacketListener&) = delete;
  ~SeqpacketListener();

  // Without it whoever waits does so until there is a descriptor.
  void on_no_descriptor(MakeRoom make_room) { make_room_ = std::move(make_room); }
  std::uint64_t refused_peers() const { return refused_; }

 private:
  SeqpacketListener(EventLoop& loop, std::string path, OnPeer on_peer);
  Status open();
  void look();
  void look_later();
  void accept_waiting();
  bool somebody_waits() const;
  void pause();

  EventLoop& loop_;
  SocketFile file_;
  OnPeer on_peer_;
  MakeRoom make_room_;
  UniqueFd socket_;
  TimerId look_timer_ = 0;
  std::optional<WatchId> watch_;
  std::optional<TimerId> resume_timer_;
  std::uint64_t refused_ = 0;
};

}  // namespace monarch
