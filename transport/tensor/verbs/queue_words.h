#pragma once

// What both sides of a link say of their queues, before one READs from the other by them.
//
// Thread: pure functions, but for what they ask of the device.

#include <memory>
#include <optional>
#include <string>

#include <monarch/codec.hpp>

#include "transport/base/result.h"
#include "transport/tensor/core/verbs_choice.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

// Behind kVerbs.
struct VerbsWord {
  std::string why_not;  // empty: by that queue
  QueueAddress address;
};
MONARCH_FIELDS(VerbsWord, why_not, address)

// The host's own address on the way to one, both numeric; empty: there is no way.
std::string address_towards(const std::string& peer);

// A queue, and how it is found.
struct OwnQueue {
  std::unique_ptr<VerbsQueue> queue;
  QueueAddress address;
  std::uint32_t gid_index = 0;
};
// `reads`: as of VerbsDevice::make_queue. `towards`: numeric, of the peer's host.
Result<OwnQueue> make_own_queue(VerbsDevice& device, std::size_t reads, const std::string& towards,
                                const std::optional<GidBytes>& peer);
std::optional<GidBytes> gid_of(const QueueAddress& address);

}  // namespace monarch::tensor
