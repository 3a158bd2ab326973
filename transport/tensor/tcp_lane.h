#pragma once

// TcpLane: an owner elsewhere: rows are asked for on the link and come by it, and on more of them where there is much;
// he looks at the word of his slot behind the last of each.
//
// Thread, lifetime: a Lane's.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/tensor/destination.h"
#include "transport/tensor/lane.h"
#include "transport/tensor/link_dial.h"
#include "transport/tensor/stream_link.h"

namespace monarch::tensor {

class TcpLane final : public Lane {
 public:
  static constexpr std::uint32_t kStreams = 4;
  static constexpr std::uint64_t kStreamsFrom = 4U << 20U;  // bytes

  // Another link to the same owner, and which it is; this is the first.
  using Dial = std::function<Result<std::unique_ptr<LinkDial>>(std::uint32_t link)>;

  // `most`: links that the owner lets it have.
  TcpLane(std::unique_ptr<StreamLink> link, Destination& destination, Dial dial, std::uint32_t most);
  ~TcpLane() override { (void)stop(); }

  // Hears what is said on the owner's link beside rows.
  using Others = std::function<Status(const StreamLink::Received&)>;
  void hear_others(Others others) { others_ = std::move(others); }
  // On the owner's link; whether it was said go_on() tells.
  void say(const LinkFrame& frame, std::string behind = {});

  LaneKind kind() const override { return LaneKind::kTcp; }
  void begin(const VersionId& version, const LaneWork& work) override;
  bool is_busy() const override { return false; }
  void poll_for(std::vector<pollfd>& descriptors) const override;
  Status go_on() override;
  std::optional<std::uint64_t> word() override;
  void say_read(const VersionId& version, bool whole) override;
  [[nodiscard]] bool stop() override;

 private:
  static constexpr std::size_t kWindow = 32;  // pieces that are asked for on a stream at a time

  struct Asked {
    Piece piece;
    Destination::Room room;
  };
  struct Stream {
    std::unique_ptr<LinkDial> dial;    // nullptr: it is linked
    std::unique_ptr<StreamLink> link;  // nullptr: it is dialled
    std::deque<Asked> asked;
    std::uint64_t done = 0;  // bytes of the first of them that are here
    bool word_asked = false;
    bool waits_for_room = false;
  };

  bool has_all(const Stream& stream) const {
    return stream.asked.empty() && !stream.word_asked && !stream.waits_for_room;
  }
  Status ask(Stream& stream);
  // False: its link is not to be had.
  bool go_on_dialling(Stream& stream);
  Status go_on(Stream& stream);
  Status hear(Stream& stream);
  Status take_word(Stream& stream, const LinkFrame& frame);
  static Status take_rows(Stream& stream);
  void take_piece(Stream& stream);

  Destination& destination_;
  const Dial dial_;
  std::size_t most_;  // streams
  Others others_;
  std::vector<Stream> streams_;  // the first is the owner's link
  Status broken_;
  const LaneWork* work_ = nullptr;
  VersionId version_;
  std::size_t next_ = 0;                  // piece that is asked for
  std::optional<std::uint64_t> another_;  // word that is not that of the version
};

}  // namespace monarch::tensor
