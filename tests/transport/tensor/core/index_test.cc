// What publishers tell of their tensors: what is put together, and what is refused.

#include "transport/tensor/core/index.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/transport/tensor/core/shards_of.h"
#include "transport/base/sanitizers.h"
#include "transport/base/text.h"

namespace monarch::tensor {
namespace {

const Dtype kFloat = parse_dtype("float32").value();
TensorKind kind(const std::string& name, const Extents& shape, Dtype dtype = kFloat) { return {name, dtype, shape}; }

std::string why(const Status& status) { return status.ok() ? "" : status.error().message; }

// Rows of `w`, and all of `b`.
SlotLayout slot_of(std::uint32_t rank, std::uint32_t ranks) {
  SlotLayout slot;
  const std::uint64_t rows = 64 / ranks;
  EXPECT_TRUE(slot.put(kind("w", {64, 8}), {{rank * rows, 0}, {rows, 8}}, rank).ok());
  EXPECT_TRUE(slot.put(kind("b", {8}), whole({8}), rank).ok());
  return slot;
}

TEST(SlotLayout, PutsOneBehindTheOther) {
  const SlotLayout slot = slot_of(1, 2);
  ASSERT_EQ(slot.index().parts.size(), 2U);
  EXPECT_EQ(slot.index().parts[0].offset, kSlotHeaderBytes);
  EXPECT_EQ(slot.index().parts[1].offset, kSlotHeaderBytes + 32 * 8 * 4);
  EXPECT_EQ(slot.bytes(), kSlotHeaderBytes + 32 * 8 * 4 + kTensorAlignment);
  EXPECT_EQ(slot.find("w", {{32, 0}, {32, 8}}), &slot.index().parts[0]);
  EXPECT_EQ(slot.find("w", {{0, 0}, {32, 8}}), nullptr);
  EXPECT_TRUE(check_index(slot.index(), slot.bytes()).ok());
}

TEST(SlotLayout, RefusesWhatCannotBePut) {
  SlotLayout slot = slot_of(0, 2);
  const auto refused = [&](const TensorKind& tensor, const Box& box) {
    const auto put = slot.put(tensor, box, 0);
    return put.ok() ? std::string() : put.error().message;
  };
  EXPECT_EQ(refused(kind("w", {64, 8}), {{0, 0}, {32, 8}}), "tensor w: [0:32, 0:8] is put twice");
  EXPECT_EQ(refused(kind("w", {64, 8}), {{48, 0}, {32, 8}}), "tensor w: [48:80, 0:8] is outside of 64 x 8");
  EXPECT_EQ(refused(kind("w", {64, 9}), {{0, 0}, {1, 1}}), "tensor w is float32 64 x 8 and is put as float32 64 x 9");
  EXPECT_EQ(refused(kind("", {1}), whole({1})), "a tensor's name has 1 to 128 bytes, and not 0");
  EXPECT_EQ(refused(kind("x", {1}, {1, 4, 1}), whole({1})),
            "tensor x: elements of dtype(1, 4, 1) do not lie in whole bytes");
  EXPECT_EQ(refused(kind("x", {1ULL << 40U, 1ULL << 40U}), whole({1, 1})),
            "tensor x: 1099511627776 x 1099511627776 is more than can be counted");
  EXPECT_EQ(refused(kind("x", {1ULL << 61U}), whole({1ULL << 61U})), "tensor x: a slot cannot have so much");
  EXPECT_EQ(refused(kind("v", {4}), {{4}, {0}}), "") << "nothing of it";
}

TEST(Index, IsThatOfAllPublishers) {
  IndexBuilder builder;
  for (std::uint32_t rank = 0; rank < 2; ++rank) ASSERT_TRUE(builder.add(rank, slot_of(rank, 2).index()).ok());
  const Index& index = builder.index();
  ASSERT_EQ(index.tensors.size(), 2U);
  const IndexNames names(index);
  EXPECT_EQ(index.tensors[names.find("b").value()].shape, (Extents{8}));
  EXPECT_FALSE(names.find("c"));
  const auto shards = shards_of(index, 0);
  ASSERT_EQ(shards.size(), 2U);
  EXPECT_EQ(shards[1].owner, 1U);
  EXPECT_EQ(shards[1].box, (Box{{32, 0}, {32, 8}}));
  const auto encoded = codec::encode(index);
  Index again;
  codec::DecodeError error;
  ASSERT_TRUE(codec::decode(encoded, again, error)) << error.what;
  EXPECT_EQ(again, index);
}

// Of each list one, a hundred, and as many as there may be.
TEST(Index, IsReadAsItWasWritten) {
  constexpr std::size_t kMost = kSanitized ? 1U << 16U : kIndexMemory / (sizeof(TensorKind) + sizeof(TensorPart));
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, kMost}) {
    const Extents shape(count == 100 ? kDims : 2, 7);
    Index many;
    for (std::size_t number = 0; number < count; ++number) many.tensors.push_back(kind(text("t", number), shape));
    for (std::size_t number = 0; number < count; ++number) {
      many.parts.push_back({.tensor = static_cast<std::uint32_t>(number), .owner = 3, .box = whole(shape)});
    }
    Index again;
    codec::DecodeError error;
    ASSERT_TRUE(codec::decode(codec::encode(many), again, error, kIndexLimits)) << error.what << " of " << count;
    EXPECT_TRUE(again == many) << count;
  }
}

TEST(Index, NamesWhatCannotBeRead) {
  const auto why = [](const std::string& bytes, codec::DecodeLimits limits = kIndexLimits) {
    Index read;
    codec::DecodeError error;
    EXPECT_FALSE(codec::decode(bytes, read, error, limits));
    return unreadable(read, error);
  };
  const Index two = slot_of(0, 2).index();
  const std::string bytes = codec::encode(two);
  EXPECT_EQ(why(bytes.substr(0, 3)),
            "its index cannot be read at tensor 0: a container reaches beyond the input (byte 2)");
  EXPECT_EQ(why(bytes, {.items = 12}), "its index cannot be read at tensor 1, after w: too many items (byte 13)");
  EXPECT_EQ(why(bytes.substr(0, bytes.size() - 1)),
            "its index cannot be read at part 1, after one of tensor w: the input ends early (byte 44)");
  Index deep = two;
  deep.tensors[0].shape = Extents(kDims);
  EXPECT_EQ(why(codec::encode(deep).replace(9, 1, "\x99")),
            "its index cannot be read at tensor 0: more dimensions than a tensor may have (byte 10)");
}

// One more of the smallest items that there are than there is memory for, which all lie within 64 MiB as they travel.
std::string too_many(const std::string& before, const std::string& item, std::size_t bytes_each) {
  const std::size_t count = kIndexMemory / bytes_each + 1;
  std::string bytes = before + '\xdd';
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((count >> static_cast<unsigned>(shift)) & 0xffU);
  }
  bytes.reserve(bytes.size() + count * item.size());
  for (std::size_t i = 0; i < count; ++i) bytes += item;
  EXPECT_LT(bytes.size(), kIndexBytes);
  return bytes;
}

TEST(Index, IsCountedBeforeItIsBuilt) {
  const std::string part = codec::encode(TensorPart{});
  const std::string tensor = codec::encode(TensorKind{});
  const auto refused = [](const std::string& bytes) {
    Index read;
    codec::DecodeError error;
    EXPECT_FALSE(codec::decode(bytes, read, error, kIndexLimits));
    EXPECT_EQ(read.tensors.capacity() + read.parts.capacity(), 0U);
    return unreadable(read, error);
  };
  EXPECT_EQ(refused(too_many("\x92\x90", part, sizeof(TensorPart))),
            "its index cannot be read at tensor 0: more than anybody has memory for (byte 7)");
  EXPECT_EQ(refused(too_many("\x92", tensor, sizeof(TensorKind)) + '\x90'),
            "its index cannot be read at tensor 0: more than anybody has memory for (byte 6)");
}

TEST(Index, OfAllPublishersIsCountedBeforeItIsBuilt) {
  IndexBuilder builder(3 * sizeof(TensorKind) + 4 * sizeof(TensorPart));
  const auto told = [&](std::uint32_t rank, const std::string& name) {
    SlotLayout slot;
    EXPECT_TRUE(slot.put(kind(name, {8}), {{rank}, {1}}, rank).ok());
    return why(builder.add(rank, slot.index()));
  };
  EXPECT_EQ(told(0, "a"), "");
  EXPECT_EQ(told(1, "b"), "");
  EXPECT_EQ(told(2, "c"), "");
  EXPECT_EQ(told(3, "a"), "") << "known";
  EXPECT_EQ(told(4, "d"), "4 tensors of this publication, with those of rank 4, are more than anybody has memory for");
  EXPECT_EQ(told(5, "c"), "3 tensors of this publication, with those of rank 5, are more than anybody has memory for");
  EXPECT_EQ(builder.index().parts.size(), 4U);
}

TEST(Index, NamesWhoDoesNotAgree) {
  IndexBuilder builder;
  ASSERT_TRUE(builder.add(4, slot_of(0, 2).index()).ok());
  SlotLayout other;
  ASSERT_TRUE(other.put(kind("w", {64, 9}), {{0, 0}, {1, 9}}, 7).ok());
  EXPECT_EQ(why(builder.add(7, other.index())), "tensor w is float32 64 x 8 at rank 4 and float32 64 x 9 at rank 7");
  SlotLayout half;
  ASSERT_TRUE(half.put(kind("b", {8}, *parse_dtype("bfloat16")), whole({8}), 7).ok());
  EXPECT_EQ(why(builder.add(7, half.index())), "tensor b is float32 8 at rank 4 and bfloat16 8 at rank 7");
}

TEST(Index, IsBelievedOnlyWhereItHolds) {
  const auto changed = [](const auto& change) {
    Index index = slot_of(0, 2).index();
    change(index);
    return why(check_index(index, slot_of(0, 2).bytes()));
  };
  EXPECT_EQ(changed([](Index&) {}), "");
  EXPECT_EQ(changed([](Index& index) { index.parts[0].tensor = 2; }), "a part of tensor 2, which is none");
  EXPECT_EQ(changed([](Index& index) { index.parts[0].offset = 0; }),
            "tensor w: [0:32, 0:8] of rank 0 is not within its slot");
  EXPECT_EQ(changed([](Index& index) { index.parts[0].offset = ~std::uint64_t{0} - 8; }),
            "tensor w: [0:32, 0:8] of rank 0 is not within its slot");
  EXPECT_EQ(changed([](Index& index) { index.parts[0].offset += 1024; }),
            "tensor w: [0:32, 0:8] of rank 0 is not within its slot");
  EXPECT_EQ(changed([](Index& index) { index.tensors[1].name = "w"; }), "two tensors are called w");
  EXPECT_EQ(changed([](Index& index) { index.parts[0].box.size[0] = 65; }),
            "tensor w: [0:65, 0:8] is outside of 64 x 8");
}

TEST(Dtype, HasTheNamesThatPyTorchGives) {
  EXPECT_EQ(to_text(Dtype{4, 16, 1}), "bfloat16");
  EXPECT_EQ(to_text(Dtype{2, 32, 4}), "dtype(2, 32, 4)");
  EXPECT_EQ(element_bytes(Dtype{2, 32, 4}), 16U);
  EXPECT_EQ(element_bytes(*parse_dtype("float8_e5m2")), 1U);
  EXPECT_EQ(element_bytes(*parse_dtype("float4_e2m1fn_x2")), 1U) << "a pair";
  EXPECT_EQ(to_text(Dtype{17, 4, 2}), "float4_e2m1fn_x2");
  EXPECT_FALSE(parse_dtype("float"));
}

}  // namespace
}  // namespace monarch::tensor
