#include "transport/wire/seqpacket_message.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "transport/base/little_endian.h"
#include "transport/base/text.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

constexpr std::size_t kDescriptorsOnTheWire = limits::kDescriptorsPerMessage + 1;  // and the memfd
constexpr std::size_t kMessageBytes = kEnvelopeBytes + kFrameHeaderBytes + limits::kSeqpacketInlineBytes;
constexpr std::size_t kLookedAtOnce = 8;        // messages
constexpr std::size_t kSmallBytes = 2U << 10U;  // of a message that is looked at behind another one

enum class Carriage : std::uint8_t { kInline = 0, kSealedMemory = 1 };

struct Envelope {
  Carriage carriage = Carriage::kInline;
  std::uint8_t descriptors = 0;  // without the memfd
  std::uint32_t payload_bytes = 0;
};

std::string encode_envelope(const Envelope& envelope) {
  std::string out{static_cast<char>(envelope.carriage), static_cast<char>(envelope.descriptors), '\0', '\0'};
  little_endian::put(out, envelope.payload_bytes);
  return out;
}

Result<Envelope> decode_envelope(std::string_view bytes) {
  if (bytes.size() < kEnvelopeBytes + kFrameHeaderBytes) {
    return Error{ErrorCode::kInvalid, text("a message of ", bytes.size(), " bytes is too short for a frame")};
  }
  const auto byte = [bytes](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  if (byte(0) > static_cast<std::uint8_t>(Carriage::kSealedMemory) || byte(2) != 0 || byte(3) != 0) {
    return Error{ErrorCode::kInvalid, "a message's envelope is not one of ours"};
  }
  return Envelope{.carriage = Carriage{byte(0)},
                  .descriptors = byte(1),
                  .payload_bytes = little_endian::get<std::uint32_t>(bytes, 4)};
}

// Owns every descriptor of the control data from here on.
std::vector<UniqueFd> adopt_descriptors(msghdr& header) {
  std::vector<UniqueFd> descriptors;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

Result<ReceivedMessage> unpack(std::string_view bytes, std::vector<UniqueFd> descriptors, std::size_t payload_limit) {
  MONARCH_ASSIGN(const Envelope envelope, decode_envelope(bytes));
  const bool sealed = envelope.carriage == Carriage::kSealedMemory;
  if (descriptors.size() != std::size_t{envelope.descriptors} + (sealed ? 1 : 0)) {
    return Error{ErrorCode::kInvalid, text("a message announces ", envelope.descriptors + (sealed ? 1 : 0),
                                           " descriptors and carries ", descriptors.size())};
  }
  if (envelope.payload_bytes > payload_limit) {
    return Error{ErrorCode::kInvalid,
                 text("a payload of ", envelope.payload_bytes, " bytes is over the limit of ", payload_limit)};
  }
  ReceivedMessage message;
  MONARCH_ASSIGN(message.frame.header, decode_header(bytes.substr(kEnvelopeBytes, kFrameHeaderBytes)));
  const std::string_view rest = bytes.substr(kEnvelopeBytes + kFrameHeaderBytes);
  if (rest.size() != (sealed ? 0 : envelope.payload_bytes)) {
    return Error{ErrorCode::kInvalid,
                 text("a payload of ", rest.size(), " bytes was announced as one of ", envelope.payload_bytes)};
  }
  if (sealed) {
    MONARCH_ASSIGN(message.frame.payload, read_sealed_memory(descriptors.front().get(), envelope.payload_bytes));
    descriptors.erase(descriptors.begin());
  } else {
    message.frame.payload = rest;
  }
  message.descriptors = std::move(descriptors);
  return message;
}

// What a look at a socket found: a message of any kind, and small ones without descriptors behind it. On the stack and
// left as it is: all channels of a thread share these pages, and none has a buffer of its own.
class Look {
 public:
  Look() {}  // NOLINT(modernize-use-equals-default,cppcoreguidelines-pro-type-member-init): would clear all of it

  // How many, of at most `most`. -1, with errno: none.
  int at(int fd, std::size_t most);
  // Each once, in order. Not kBusy and not kGone: no peer of ours sends it.
  Result<ReceivedMessage> first(std::size_t payload_limit);
  // Nothing: it is not a small one without descriptors, and is looked at by itself.
  std::optional<ReceivedMessage> behind(std::size_t index, std::size_t payload_limit);
  // So many leave the socket, and what is left of them ends.
  Status take(int fd, std::size_t count) const;

 private:
  std::string_view bytes(std::size_t index) const {
    return {static_cast<const char*>(pieces_[index].iov_base), headers_[index].msg_len};
  }

  std::array<char, kMessageBytes> first_;
  std::array<std::array<char, kSmallBytes>, kLookedAtOnce - 1> behind_;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsOnTheWire * sizeof(int))> control_;
  std::array<iovec, kLookedAtOnce> pieces_;
  std::array<mmsghdr, kLookedAtOnce> headers_;
};

int Look::at(int fd, std::size_t most) {
  int count = -1;
  do {
    for (std::size_t i = 0; i < most; ++i) {
      pieces_[i] = i == 0 ? iovec{.iov_base = first_.data(), .iov_len = first_.size()}
                          : iovec{.iov_base = behind_[i - 1].data(), .iov_len = kSmallBytes};
      headers_[i] = {};
      headers_[i].msg_hdr.msg_iov = &pieces_[i];
      headers_[i].msg_hdr.msg_iovlen = 1;
    }
    headers_[0].msg_hdr.msg_control = control_.data();
    headers_[0].msg_hdr.msg_controllen = control_.size();
    // WARNING: descriptors for which a process has no room are cut off and lost (unix(7)). So a message is looked at
    // first, and taken once all of it is here.
    count = ::recvmmsg(fd, headers_.data(), static_cast<unsigned>(most), MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC,
                       nullptr);
    // WARNING: a peer that closed with messages of ours unread makes recvmsg answer ECONNRESET once, in front of the
    // messages that it had sent before; they are still there to read.
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  return count;
}

Result<ReceivedMessage> Look::first(std::size_t payload_limit) {
  msghdr& header = headers_[0].msg_hdr;
  std::vector<UniqueFd> descriptors = adopt_descriptors(header);
  // A message without bytes reads like the end; no peer of ours sends one.
  if (headers_[0].msg_len == 0) return Error{ErrorCode::kGone, "the peer closed the connection"};
  const bool is_cut = (header.msg_flags & MSG_CTRUNC) != 0;
  if (is_cut && descriptors.size() < kDescriptorsOnTheWire) {
    return errno_error("the descriptors that come with a message", EMFILE);
  }
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    return Error{ErrorCode::kInvalid, text("a message is longer than ", kMessageBytes, " bytes")};
  }
  if (is_cut) {
    return Error{ErrorCode::kInvalid,
                 text("a message's descriptors were cut off: it has more than ", kDescriptorsOnTheWire)};
  }
  return unpack(bytes(0), std::move(descriptors), payload_limit);
}

// Its descriptors, for which there was no room here, are still in the socket: none is held for a message whose turn has
// not come.
std::optional<ReceivedMessage> Look::behind(std::size_t index, std::size_t payload_limit) {
  if ((headers_[index].msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  auto message = unpack(bytes(index), {}, payload_limit);
  if (!message.ok()) return std::nullopt;
  return std::move(*message);
}

Status Look::take(int fd, std::size_t count) const {
  std::array<mmsghdr, kLookedAtOnce> headers{};
  for (std::size_t taken = 0; taken < count;) {
    const int more =
        ::recvmmsg(fd, &headers[taken], static_cast<unsigned>(count - taken), MSG_DONTWAIT | MSG_TRUNC, nullptr);
    if (more < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (more <= 0) return errno_error(ErrorCode::kInternal, "taking a message", errno);
    taken += static_cast<std::size_t>(more);
  }
  // WARNING: with SO_PEEK_OFF a look passes over a message without bytes that was looked at before (datagram.c). Taking
  // does not.
  for (std::size_t i = 0; i < count; ++i) {
    if (headers[i].msg_len != headers_[i].msg_len) return Error{ErrorCode::kInvalid, "a message without bytes"};
  }
  return {};
}

// So that the next look begins there, and each goes on behind what was looked at before and not taken. False: this
// system has no such looks.
bool look_from_the_first(int fd) {
  const int begin = 0;
  return ::setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof begin) == 0;
}

}  // namespace

Result<OutgoingMessage> pack_message_to_wait(const Frame& frame, std::vector<UniqueFd> descriptors, LateDescriptor late,
                                             std::size_t inline_limit) {
  if (frame.payload.size() > limits::kSeqpacketPayloadBytes) {
    return Error{ErrorCode::kInvalid, text("a payload of ", frame.payload.size(), " bytes is over the limit of ",
                                           limits::kSeqpacketPayloadBytes)};
  }
  const std::size_t count = descriptors.size() + (late ? 1 : 0);
  if (count > limits::kDescriptorsPerMessage) {
    return Error{ErrorCode::kInvalid,
                 text(count, " descriptors are over the limit of ", limits::kDescriptorsPerMessage, " a message")};
  }
  Envelope envelope{.descriptors = static_cast<std::uint8_t>(count),
                    .payload_bytes = static_cast<std::uint32_t>(frame.payload.size())};
  OutgoingMessage message;
  message.charge = kEnvelopeBytes + kFrameHeaderBytes + frame.payload.size();
  const bool fits = frame.payload.size() <= inline_limit;
  if (!fits) envelope.carriage = Carriage::kSealedMemory;
  message.bytes = encode_envelope(envelope) + encode_header(frame.header);
  (fits ? message.bytes : message.sealed) += frame.payload;
  message.descriptors = std::move(descriptors);
  message.late = std::move(late);
  return message;
}

Status complete_message(OutgoingMessage& message) {
  if (!message.sealed.empty()) {
    MONARCH_ASSIGN(UniqueFd memory, make_sealed_memory("monarch-frame", message.sealed));
    message.descriptors.insert(message.descriptors.begin(), std::move(memory));
    message.sealed = {};
  }
  if (message.late) {
    MONARCH_ASSIGN(UniqueFd late, message.late());
    message.descriptors.push_back(std::move(late));
    message.late = nullptr;
  }
  return {};
}

Result<OutgoingMessage> pack_message(const Frame& frame, std::vector<UniqueFd> descriptors, std::size_t inline_limit) {
  MONARCH_ASSIGN(OutgoingMessage message, pack_message_to_wait(frame, std::move(descriptors), {}, inline_limit));
  MONARCH_TRY(complete_message(message));
  return message;
}

SendOutcome send_message(int fd, const OutgoingMessage& message) {
  iovec piece{.iov_base = const_cast<char*>(message.bytes.data()), .iov_len = message.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsOnTheWire * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!message.descriptors.empty()) {
    const std::size_t bytes = message.descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    for (std::size_t i = 0; i < message.descriptors.size(); ++i) {
      const int descriptor = message.descriptors[i].get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &descriptor, sizeof descriptor);
    }
  }
  while (::sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    switch (errno) {
      case EINTR: continue;
      case EAGAIN: return SendOutcome::kFull;
      // WARNING: ETOOMANYREFS comes when more descriptors are in flight than RLIMIT_NOFILE (unix(7)); it passes when
      // peers receive, and no readiness tells. ENOBUFS and ENOMEM are alike.
      case ETOOMANYREFS:
      case ENOBUFS:
      case ENOMEM: return SendOutcome::kStarved;
      // WARNING: ECONNRESET comes once when the peer closed with messages of ours unread, EPIPE ever after.
      case EPIPE:
      case ECONNRESET:
      case ENOTCONN: return SendOutcome::kPeerClosed;
      default: return SendOutcome::kFailed;
    }
  }
  return SendOutcome::kSent;
}

Result<std::optional<ReceivedMessage>> receive_message(int fd, std::size_t payload_limit) {
  Look look;
  if (look.at(fd, 1) < 0) {
    if (errno == EAGAIN) return std::optional<ReceivedMessage>();
    return errno_error(ErrorCode::kInternal, "receiving a message", errno);
  }
  auto message = look.first(payload_limit);
  const bool stays = !message.ok() && message.error().code != ErrorCode::kInvalid;
  const Status taken = stays ? Status() : look.take(fd, 1);
  if (!message.ok()) return std::move(message).error();
  MONARCH_TRY(taken);
  return std::optional<ReceivedMessage>(std::move(*message));
}

MessageReader::MessageReader(int fd, std::size_t payload_limit)
    : fd_(fd), payload_limit_(payload_limit), looks_ahead_(look_from_the_first(fd)) {}

Result<MessageReader::Found> MessageReader::read(std::size_t most, const Take& take) {
  const std::size_t wanted = looks_ahead_ && !alone_ ? std::min(most, kLookedAtOnce) : 1;
  alone_ = false;
  Look look;
  const int count = look.at(fd_, wanted);
  if (count < 0 && errno == EAGAIN) return Found::kAll;
  if (count < 0) return errno_error(ErrorCode::kInternal, "receiving a message", errno);
  auto first = look.first(payload_limit_);
  if (!first.ok()) {
    if (looks_ahead_) MONARCH_ASSERT(look_from_the_first(fd_));
    return std::move(first).error();
  }
  const auto found = static_cast<std::size_t>(count);
  std::size_t heard = 1;
  Next next = take(std::move(*first));
  while (next == Next::kGoOn && heard < found) {
    auto message = look.behind(heard, payload_limit_);
    if (!message) break;
    ++heard;
    next = take(std::move(*message));
  }
  if (next == Next::kGone) return Found::kPart;
  MONARCH_TRY(look.take(fd_, heard));
  if (heard == found) return found < wanted ? Found::kAll : Found::kPart;
  alone_ = next == Next::kGoOn;
  MONARCH_ASSERT(look_from_the_first(fd_));
  return Found::kPart;
}

}  // namespace monarch
