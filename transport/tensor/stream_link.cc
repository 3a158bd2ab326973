#include "transport/tensor/stream_link.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::size_t kPieces = 256;                    // of a writev; more at a time gain nothing
constexpr std::size_t kGrowth = std::size_t{1} << 20U;  // memory is had for what has come, not for what was announced

Error peer_gone() { return {ErrorCode::kGone, "its other side has ended"}; }

// 0: not now.
Result<std::size_t> as_result(ssize_t done) {
  if (done > 0) return static_cast<std::size_t>(done);
  if (done == 0 || errno == ECONNRESET || errno == EPIPE) return peer_gone();
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  return errno_error("a link between ranks", errno);
}

}  // namespace

Result<std::unique_ptr<StreamLink>> StreamLink::make(UniqueFd socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return errno_error("fcntl of a link", errno);
  return std::unique_ptr<StreamLink>(new StreamLink(std::move(socket)));
}

// ---- Sending.

Status StreamLink::queue(Outgoing outgoing) {
  if (queue_.size() >= kUnsent) return Error{ErrorCode::kBusy, text(kUnsent, " frames wait for its other side")};
  queue_.push_back(std::move(outgoing));
  return {};
}

Status StreamLink::send(LinkFrame frame, std::string behind) {
  if (!behind.empty()) frame.length = behind.size();
  return queue({.bytes = encode_frame(frame) + behind, .slot = {}});
}

Status StreamLink::send_slot(const LinkFrame& frame, std::shared_ptr<const Slot> slot) {
  return queue({.bytes = encode_frame(frame), .slot = std::move(slot), .rows = frame, .of = Outgoing::Of::kDescriptor});
}

Status StreamLink::send_rows(const LinkFrame& asked, std::shared_ptr<const Slot> slot) {
  MONARCH_ASSERT(check_rows(asked, slot->bytes()).ok());
  LinkFrame here = asked;
  here.kind = FrameKind::kRowsHere;
  here.length = asked.rows * asked.row;
  return queue({.bytes = encode_frame(here), .slot = std::move(slot), .rows = asked});
}

Status StreamLink::send_word(const LinkFrame& asked, std::shared_ptr<const Slot> slot) {
  return queue({.bytes = encode_frame(asked), .slot = std::move(slot), .rows = asked, .of = Outgoing::Of::kWord});
}

std::uint64_t StreamLink::size_of(const Outgoing& outgoing) {
  const bool rows = outgoing.is_of(Outgoing::Of::kRows);
  return outgoing.bytes.size() + (rows ? outgoing.rows.rows * outgoing.rows.row : 0);
}

Result<std::size_t> StreamLink::send_some(Outgoing& outgoing) {
  std::array<iovec, kPieces> pieces{};
  std::size_t count = 0;
  std::uint64_t at = outgoing.sent;
  if (at < outgoing.bytes.size()) {
    pieces[count++] = {outgoing.bytes.data() + at, outgoing.bytes.size() - static_cast<std::size_t>(at)};
    at = outgoing.bytes.size();
  }
  for (std::uint64_t row = 0; at < size_of(outgoing) && count < kPieces; at += row) {
    const LinkFrame& rows = outgoing.rows;
    const std::uint64_t in_rows = at - outgoing.bytes.size();
    const std::uint64_t within = in_rows % rows.row;
    row = rows.row - within;
    const std::uint64_t offset = rows.offset + in_rows / rows.row * rows.pitch + within;
    pieces[count++] = {outgoing.slot->start() + offset, static_cast<std::size_t>(row)};
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  UniqueFd descriptor;
  if (outgoing.sent == 0 && outgoing.is_of(Outgoing::Of::kDescriptor)) {
    // It goes with the first byte.
    MONARCH_ASSIGN(descriptor,
                   (outgoing.rows.flags & kPinned) != 0 ? outgoing.slot->pinning_reader() : outgoing.slot->reader());
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = descriptor.get();
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  return as_result(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL));
}

Status StreamLink::flush(std::uint64_t most) {
  for (std::uint64_t done = 0; !queue_.empty() && done < most;) {
    Outgoing& next = queue_.front();
    if (next.sent == 0 && next.is_of(Outgoing::Of::kWord)) {
      LinkFrame frame = next.rows;
      frame.offset = next.slot->word();
      next.bytes = encode_frame(frame);
    }
    MONARCH_ASSIGN(const std::size_t sent, send_some(next));
    if (sent == 0) return {};
    next.sent += sent;
    done += sent;
    if (next.sent == size_of(next)) queue_.pop_front();
  }
  return {};
}

// ---- Receiving.

Result<std::size_t> StreamLink::read_some(char* into, std::size_t size) {
  iovec piece{into, size};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  MONARCH_ASSIGN(const std::size_t got, as_result(::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC)));
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
    descriptor_ = UniqueFd(fd);
  }
  return got;
}

Result<std::optional<StreamLink::Received>> StreamLink::receive(std::uint64_t most) {
  MONARCH_ASSERT(rows_left_ == 0);
  while (!coming_) {
    const std::size_t here = header_.size();
    header_.resize(kFrameBytes);
    const auto got = read_some(header_.data() + here, kFrameBytes - here);
    header_.resize(here + (got.ok() ? *got : 0));
    if (!got.ok()) return got.error();
    if (*got == 0) return std::optional<Received>();
    if (header_.size() < kFrameBytes) continue;
    MONARCH_ASSIGN(const LinkFrame frame, decode_frame(std::exchange(header_, {})));
    if (frame.kind == FrameKind::kRowsHere) {
      rows_left_ = frame.length;
      return std::optional(Received{frame, {}, {}});
    }
    const bool carries = frame.kind != FrameKind::kSlot;  // its length is that of the slot
    if (carries && frame.length > most) {
      return Error{ErrorCode::kInvalid,
                   text("a frame with ", frame.length, " bytes behind it, and at most ", most, " are taken")};
    }
    coming_ = Received{frame, {}, std::move(descriptor_)};
    behind_here_ = 0;
  }
  const std::uint64_t length = coming_->frame.kind == FrameKind::kSlot ? 0 : coming_->frame.length;
  while (behind_here_ < length) {
    std::string& behind = coming_->behind;
    if (behind_here_ == behind.size()) {
      behind.resize(std::min<std::size_t>(static_cast<std::size_t>(length), behind.size() + kGrowth));
    }
    MONARCH_ASSIGN(const std::size_t got, read_some(behind.data() + behind_here_, behind.size() - behind_here_));
    if (got == 0) return std::optional<Received>();
    behind_here_ += got;
  }
  return std::exchange(coming_, std::nullopt);
}

Result<std::size_t> StreamLink::read_rows(const iovec* into, std::size_t count) {
  const ssize_t got = ::readv(socket_.get(), into, static_cast<int>(count));
  MONARCH_ASSIGN(const std::size_t size, as_result(got));
  MONARCH_ASSERT(size <= rows_left_);  // who reads them knows how many they are
  rows_left_ -= size;
  return size;
}

}  // namespace monarch::tensor
