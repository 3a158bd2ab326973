#include "transport/wire/seqpacket_message.h"

#include <sys/socket.h>
#include <sys/uio.h>

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

// The next message leaves the socket, and what is left of it ends.
void take_message(int fd) {
  ssize_t taken = -1;
  do taken = ::recv(fd, nullptr, 0, MSG_DONTWAIT);
  while (taken < 0 && (errno == EINTR || errno == ECONNRESET));
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
  // On the stack and left as it is: all channels of a thread share these pages, and none has a buffer of its own.
  std::array<char, kMessageBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsOnTheWire * sizeof(int))> control{};
  iovec piece{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr header{};
  ssize_t size = -1;
  do {
    header = msghdr{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    // WARNING: descriptors for which a process has no room are cut off and lost (unix(7)). So a message is looked at
    // first, and taken once all of it is here.
    size = ::recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // WARNING: a peer that closed with messages of ours unread makes recvmsg answer ECONNRESET once, in front of the
    // messages that it had sent before; they are still there to read.
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  if (size < 0 && errno == EAGAIN) return std::optional<ReceivedMessage>();
  if (size < 0) return errno_error(ErrorCode::kInternal, "receiving a message", errno);
  std::vector<UniqueFd> descriptors = adopt_descriptors(header);
  // A message without bytes reads like the end; no peer of ours sends one.
  if (size == 0) return Error{ErrorCode::kGone, "the peer closed the connection"};
  const bool is_cut = (header.msg_flags & MSG_CTRUNC) != 0;
  if (is_cut && descriptors.size() < kDescriptorsOnTheWire) {
    return errno_error("the descriptors that come with a message", EMFILE);
  }
  take_message(fd);
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    return Error{ErrorCode::kInvalid, text("a message is longer than ", kMessageBytes, " bytes")};
  }
  if (is_cut) {
    return Error{ErrorCode::kInvalid,
                 text("a message's descriptors were cut off: it has more than ", kDescriptorsOnTheWire)};
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(size));
  MONARCH_ASSIGN(ReceivedMessage message, unpack(bytes, std::move(descriptors), payload_limit));
  return std::optional<ReceivedMessage>(std::move(message));
}

}  // namespace monarch
