// What others say of published tensors: whatever the bytes are, an index that is believed gives plans that stay within
// what it says, a card is one or none, and members of a group that are believed are each there once.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <monarch/codec.hpp>

#include "tests/transport/tensor/core/shards_of.h"
#include "transport/base/assert.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/core/group_core.h"
#include "transport/tensor/core/hello.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/core/plan.h"
#include "transport/tensor/frames.h"
#include "transport/tensor/held_groups.h"
#include "transport/tensor/verbs/queue_words.h"

namespace {

using namespace monarch;
using namespace monarch::tensor;

constexpr std::uint64_t kSlot = 1U << 20U;

// A reader that wants all of it.
void read_whole(const Index& index, std::uint32_t tensor) {
  const TensorKind& kind = index.tensors[tensor];
  const std::uint64_t element = element_bytes(kind.dtype);
  const std::uint64_t bytes = elements(kind.shape).value() * element;
  if (bytes > kSlot || elements(kind.shape).value() > 4'096) return;
  const auto plan =
      make_plan(shards_of(index, tensor), {{whole(kind.shape), dense_strides(kind.shape, element), 0}}, element);
  if (!plan.ok()) return;
  std::uint64_t copied = 0;
  for (const Copy& copy : *plan) {
    copied += copy.bytes();
    for_each_row(copy, [&](std::uint64_t source, std::uint64_t destination) {
      MONARCH_ASSERT(source >= kSlotHeaderBytes && source + copy.row <= kSlot);
      MONARCH_ASSERT(destination + copy.row <= bytes);
    });
  }
  MONARCH_ASSERT(copied == bytes);
}

// Whoever calls with them: the first of them, or the last, is answered or refused.
void read_members(const GroupCallWord& word) {
  const auto members = GroupMembers::read(word.members);
  if (!members) return;
  MONARCH_ASSERT(GroupMembers::read(members->runs()) == members && !members->text().empty());
  for (const std::uint32_t index : {0U, members->size() / 2, members->size() - 1}) {
    MONARCH_ASSERT(members->find(members->at(index)) == index);
  }
  GroupCore core({.first = members->at(0)});
  for (const std::uint32_t index : {0U, members->size() - 1, members->size() - 1}) {
    core.step(group_event::Call{.link = index,
                                .member = members->at(index),
                                .generation = 1,
                                .number = 1,
                                .members = *members,
                                .offer = {}},
              Instant());
  }
  MONARCH_ASSERT(members->size() > 2 || core.count() >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (const auto card = parse_card(input); card.ok()) {
    MONARCH_ASSERT(*parse_card(card_text(*card)) == *card);
  }
  if (const auto frame = decode_frame(input.substr(0, kFrameBytes)); frame.ok()) {
    MONARCH_ASSERT(encode_frame(*frame) == input.substr(0, kFrameBytes));
    if (check_rows(*frame, kSlot).ok()) {
      MONARCH_ASSERT(frame->offset + (frame->rows - 1) * frame->pitch + frame->row <= kSlot);
    }
  }
  HelloAsk ask;
  codec::DecodeError none;
  if (codec::decode(input, ask, none)) {
    const auto answer = answer_hello(ask, ask.owner, "secret", std::string(kNonceBytes, 'n'));
    MONARCH_ASSERT(!answer.ok() || ask.nonce.data == answer->nonce.data || prove_hello(ask, *answer, "secret").ok());
  }
  GroupCallWord call;
  codec::DecodeError uncalled;
  if (codec::decode(input, call, uncalled, kGroupLimits)) read_members(call);
  GroupMeetingWord meeting;
  codec::DecodeError unanswered;
  if (codec::decode(input, meeting, unanswered, kGroupLimits)) MONARCH_ASSERT(!codec::encode(meeting).empty());
  VerbsWord word;
  codec::DecodeError unmet;
  if (codec::decode(input, word, unmet)) {
    QueueAddress own{.queue = 1, .packet = 1, .lid = 1, .by_gid = word.address.by_gid, .mtu = 3, .reads = 8, .gid = {}};
    if (const auto path = meet_queues(own, 0, word.address); path.ok()) {
      MONARCH_ASSERT(path->mtu >= 1 && path->mtu <= 3 && path->reads >= 1 && path->reads <= 8);
      MONARCH_ASSERT(gid_of(word.address).has_value() == word.address.by_gid);
    }
  }
  Index index;
  codec::DecodeError error;
  if (!codec::decode(input, index, error) || !check_index(index, kSlot).ok()) return 0;
  IndexBuilder builder;
  MONARCH_ASSERT(builder.add(0, index).ok());
  for (std::uint32_t tensor = 0; tensor < index.tensors.size() && tensor < 8; ++tensor) read_whole(index, tensor);
  return 0;
}
