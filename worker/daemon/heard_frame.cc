#include "worker/daemon/heard_frame.h"

#include <string_view>
#include <utility>

#include "transport/base/text.h"
#include "transport/messages/claim.h"
#include "transport/messages/rank.h"
#include "transport/messages/roster.h"
#include "transport/messages/stacks.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"
#include "transport/wire/messages.h"

namespace monarch::daemon {

Result<FrameHeard> heard_from_link(const std::vector<ZmqFrame>& frames,
                                   const std::function<std::optional<Instant>(std::uint64_t seq)>& sent_at) {
  if (frames.size() != 2) return Error{ErrorCode::kInvalid, text("a message of ", frames.size(), " parts")};
  MONARCH_ASSIGN(const FrameHeader header, decode_header(frames[0].bytes()));
  FrameHeard frame{.job = header.job, .term = header.term, .sent_at = {}, .message = {}};
  const auto take = [&](auto&& message) { frame.message = std::forward<decltype(message)>(message); };
  MONARCH_TRY(
      route(header, frames[1].bytes(), when<Ack>([&](Ack&& ack) {
              frame.sent_at = sent_at(ack.seq);
              frame.message = std::move(ack);
            }),
            when<Start>(take), when<Shutdown>(take), when<VaultTable>(take),
            unopened<Roster, ClaimAnswer>([&](std::string_view payload) {
              frame.message = ForPost{.type = header.type, .payload = std::string(payload)};
            }),
            unopened<Reserve, Stop, Signal, Tell, Input, TakeStacks, CommitAnswer>([&](std::string_view payload) {
              frame.message = ForKeeper{.type = header.type, .payload = std::string(payload)};
            })));
  return frame;
}

}  // namespace monarch::daemon
