#include "worker/daemon/link_message.h"

#include <utility>

#include "transport/base/control_messages.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/stack_messages.h"

namespace monarch::daemon {
namespace {

template <class Message>
Result<FrameHeard> heard(FrameHeard frame, std::string_view payload) {
  MONARCH_ASSIGN(frame.message, decode_payload<Message>(payload));
  return frame;
}

}  // namespace

std::vector<ZmqFrame> link_message(const FrameHeader& header, std::string payload) {
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::copy(encode_header(header)));
  frames.push_back(ZmqFrame::take(std::move(payload)));
  return frames;
}

Result<FrameHeard> heard_from_link(const std::vector<ZmqFrame>& frames,
                                   const std::function<std::optional<Instant>(std::uint64_t seq)>& sent_at) {
  if (frames.size() != 2) return Error{ErrorCode::kInvalid, text("a message of ", frames.size(), " parts")};
  MONARCH_ASSIGN(const FrameHeader header, decode_header(frames[0].bytes()));
  const std::string_view payload = frames[1].bytes();
  FrameHeard frame{.job = header.job, .term = header.term, .sent_at = {}, .message = {}};
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::kAck: {
      MONARCH_ASSIGN(auto ack, decode_payload<Ack>(payload));
      frame.sent_at = sent_at(ack.seq);
      frame.message = std::move(ack);
      return frame;
    }
    case MessageType::kReserve: return heard<Reserve>(std::move(frame), payload);
    case MessageType::kStart: return heard<Start>(std::move(frame), payload);
    case MessageType::kStop: return heard<Stop>(std::move(frame), payload);
    case MessageType::kSignal: return heard<Signal>(std::move(frame), payload);
    case MessageType::kTell: return heard<Tell>(std::move(frame), payload);
    case MessageType::kTakeStacks: return heard<TakeStacks>(std::move(frame), payload);
    case MessageType::kVaultTable: return heard<VaultTable>(std::move(frame), payload);
    case MessageType::kCommitAnswer: return heard<CommitAnswer>(std::move(frame), payload);
    case MessageType::kShutdown: return heard<Shutdown>(std::move(frame), payload);
    default:
      return Error{ErrorCode::kInvalid, text("a message of type ", header.type)};  // of another direction or build
  }
}

}  // namespace monarch::daemon
