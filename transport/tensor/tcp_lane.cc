#include "transport/tensor/tcp_lane.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <utility>

#include "transport/base/text.h"
#include "transport/tensor/core/slot_word.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kRowsAtOnce = 256;  // of a readv

}  // namespace

TcpLane::TcpLane(std::unique_ptr<StreamLink> link, Destination& destination, Dial dial, std::uint32_t most)
    : destination_(destination), dial_(std::move(dial)), most_(std::min(most, kStreams)) {
  streams_.resize(1);
  streams_.front().link = std::move(link);
}

void TcpLane::begin(const VersionId& version, const LaneWork& work) {
  version_ = version;
  work_ = &work;
  next_ = 0;
  another_.reset();
  while (work.bytes >= kStreamsFrom && streams_.size() < most_) {
    auto dial = dial_(static_cast<std::uint32_t>(streams_.size()) + 1);
    if (!dial.ok()) break;  // it goes by those that there are
    streams_.emplace_back().dial = std::move(*dial);
  }
  broken_ = streams_.front().link->send({.kind = FrameKind::kReading, .version = version});
  for (Stream& stream : streams_) {
    if (broken_.ok() && stream.link) broken_ = ask(stream);
  }
}

void TcpLane::say(const LinkFrame& frame, std::string behind) {
  StreamLink& link = *streams_.front().link;
  if (broken_.ok()) broken_ = link.send(frame, std::move(behind));
  if (broken_.ok()) broken_ = link.flush();
}

// Until nothing is left to ask for, or enough is on its way; the word behind the last.
Status TcpLane::ask(Stream& stream) {
  const bool begun =
      next_ < work_->pieces.size() || !stream.asked.empty() || stream.waits_for_room || &stream == &streams_.front();
  stream.waits_for_room = false;
  while (stream.asked.size() < kWindow && next_ < work_->pieces.size()) {
    const Piece& piece = work_->pieces[next_];
    const auto room = destination_.room(piece);
    stream.waits_for_room = !room;
    if (!room) break;
    ++next_;
    stream.asked.push_back({piece, *room});
    MONARCH_TRY(stream.link->send({.kind = FrameKind::kRows,
                                   .version = version_,
                                   .offset = piece.source,
                                   .row = piece.row,
                                   .rows = piece.rows,
                                   .pitch = piece.source_pitch}));
  }
  if (begun && next_ == work_->pieces.size() && !stream.word_asked) {
    stream.word_asked = true;
    MONARCH_TRY(stream.link->send({.kind = FrameKind::kWord, .version = version_}));
  }
  return stream.link->flush();
}

void TcpLane::poll_for(std::vector<pollfd>& descriptors) const {
  for (const Stream& stream : streams_) {
    if (stream.dial) {
      descriptors.push_back({stream.dial->descriptor(), stream.dial->events(), 0});
      continue;
    }
    const bool writes = stream.link->wants_to_write();
    descriptors.push_back({stream.link->descriptor(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
}

Status TcpLane::go_on() {
  for (std::size_t i = 0; broken_.ok() && i < streams_.size();) {
    if (streams_[i].dial && !go_on_dialling(streams_[i])) {
      // It goes by those that there are; an owner with no place for more is asked for no more.
      streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(i));
      most_ = streams_.size();
      continue;
    }
    if (broken_.ok() && streams_[i].link) broken_ = go_on(streams_[i]);
    if (broken_.ok() && streams_[i].waits_for_room) broken_ = ask(streams_[i]);
    ++i;
  }
  // What cannot be said or heard is the end of the link.
  if (broken_.ok() || broken_.error().code == ErrorCode::kInvalid) return broken_;
  return Error{ErrorCode::kBusy, broken_.error().message};
}

bool TcpLane::go_on_dialling(Stream& stream) {
  auto link = stream.dial->go_on();
  if (!link.ok()) return false;
  if (*link == nullptr) return true;
  stream.dial.reset();
  stream.link = std::move(*link);
  if (work_ == nullptr || next_ == work_->pieces.size()) return true;
  broken_ = ask(stream);
  return true;
}

Status TcpLane::go_on(Stream& stream) {
  MONARCH_TRY(stream.link->flush());
  return hear(stream);
}

Status TcpLane::hear(Stream& stream) {
  for (;;) {
    if (stream.link->rows_left() > 0) {
      MONARCH_TRY(take_rows(stream));
      if (stream.link->rows_left() > 0) return {};
      take_piece(stream);
      MONARCH_TRY(ask(stream));
    }
    MONARCH_ASSIGN(const auto received, stream.link->receive(kOwnersWordBytes));
    if (!received) return {};
    const LinkFrame& frame = received->frame;
    if (frame.kind == FrameKind::kUnfit) return Error{ErrorCode::kInvalid, printable(received->behind)};
    if (frame.kind == FrameKind::kWord && frame.version == version_) {
      MONARCH_TRY(take_word(stream, frame));
      continue;
    }
    const bool other = frame.kind == FrameKind::kVerbs || frame.kind == FrameKind::kSlot;
    if (other && others_) {
      MONARCH_TRY(others_(*received));
      continue;
    }
    const bool expected = frame.kind == FrameKind::kRowsHere && work_ != nullptr && !stream.asked.empty() &&
                          frame.version == version_ && frame.offset == stream.asked.front().piece.source &&
                          frame.length == stream.asked.front().piece.bytes();
    if (!expected) return Error{ErrorCode::kInvalid, "it says what nobody has asked"};
    stream.done = 0;
  }
}

void TcpLane::take_piece(Stream& stream) {
  const Asked& asked = stream.asked.front();
  destination_.filled(asked.piece, asked.room);
  stream.asked.pop_front();
}

Status TcpLane::take_rows(Stream& stream) {
  const auto& [piece, room] = stream.asked.front();
  while (stream.link->rows_left() > 0) {
    std::array<iovec, kRowsAtOnce> into{};
    std::size_t count = 0;
    std::uint64_t row = stream.done / piece.row;
    std::uint64_t within = stream.done % piece.row;
    for (; row < piece.rows && count < into.size(); ++row) {
      into[count++] = {room.at + row * room.pitch + within, static_cast<std::size_t>(piece.row - within)};
      within = 0;
    }
    MONARCH_ASSIGN(const std::size_t got, stream.link->read_rows(into.data(), count));
    if (got == 0) return {};
    stream.done += got;
  }
  return {};
}

// Where rows would be, it says that the version is gone; what was asked for beside them will not come either.
Status TcpLane::take_word(Stream& stream, const LinkFrame& frame) {
  if (frame.offset != word_of(version_.number)) another_ = frame.offset;
  if (!stream.asked.empty()) {
    if (!another_) return Error{ErrorCode::kInvalid, "it says its word before its rows"};
    return {};
  }
  stream.word_asked = false;
  return {};
}

std::optional<std::uint64_t> TcpLane::word() {
  if (work_ == nullptr) return std::nullopt;
  if (another_) return another_;
  const bool all = next_ == work_->pieces.size() &&
                   std::all_of(streams_.begin(), streams_.end(), [this](const Stream& one) { return has_all(one); });
  return all ? std::optional(word_of(version_.number)) : std::nullopt;
}

void TcpLane::say_read(const VersionId& version, bool whole) {
  const std::uint16_t flags = whole ? kWhole : std::uint16_t{0};
  say({.kind = FrameKind::kRead, .flags = flags, .version = version});
}

// What is on its way would be taken for the next: its link is let go.
bool TcpLane::stop() {
  work_ = nullptr;
  const bool idle = std::all_of(streams_.begin(), streams_.end(), [this](const Stream& one) { return has_all(one); });
  for (Stream& stream : streams_) {
    for (const Asked& asked : stream.asked) destination_.drop(asked.room);
    stream.asked.clear();
    stream.waits_for_room = false;
  }
  return broken_.ok() && idle;
}

}  // namespace monarch::tensor
