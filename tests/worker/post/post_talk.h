#pragma once

// PostTest: two posts of one job, and what a caller or a rank says and hears at their doors.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/post_lab.h"
#include "transport/messages/post.h"
#include "transport/wire/lent_memory.h"
#include "transport/wire/mapped_memory.h"

namespace monarch::post {

class PostTest : public PostLab {
 protected:
  UniqueFd come(const Host& host, const std::string& mesh, std::uint32_t rank, bool serves,
                std::uint32_t version = kOldestPostDoorVersion) {
    auto socket = connect_seqpacket(host.setup.directory + "/post");
    EXPECT_TRUE(socket.ok());
    if (!socket.ok()) return {};
    PostHello hello;
    hello.version = version;
    hello.mesh = mesh;
    hello.rank = rank;
    hello.generation = 1;
    hello.serves = serves;
    if (serves) hello.actors = {{"a", "A", {{"f", "*"}}}};
    say(*socket, hello);
    EXPECT_TRUE(hear<PostWelcome>(*socket).has_value());
    return std::move(*socket);
  }

  template <class Message>
  static void say(const UniqueFd& socket, const Message& message, std::vector<UniqueFd> descriptors = {}) {
    const auto packed = pack_message(frame_of(message), std::move(descriptors), limits::kSeqpacketInlineBytes);
    ASSERT_TRUE(packed.ok());
    ASSERT_EQ(send_message(socket.get(), *packed), SendOutcome::kSent);
  }

  template <class Message>
  static std::optional<std::pair<Message, std::vector<UniqueFd>>> hear(const UniqueFd& socket) {
    if (!becomes_readable(socket.get())) return std::nullopt;
    auto received = receive_message(socket.get(), limits::kSeqpacketPayloadBytes);
    if (!received.ok() || !received->has_value()) return std::nullopt;
    EXPECT_TRUE(is_a<Message>((*received)->frame.header)) << (*received)->frame.header.type;
    auto message = decode_payload<Message>((*received)->frame.payload);
    if (!message.ok()) return std::nullopt;
    return std::pair(std::move(*message), std::move((*received)->descriptors));
  }

  static std::string read(const UniqueFd& memory, std::size_t size) {
    EXPECT_GE(lent_memory_size(memory.get()).value(), size);
    const auto mapped = MappedMemory::map(memory.get(), size);
    return mapped.ok() ? std::string((*mapped)->bytes()) : std::string();
  }

  static CallBody here(const std::string& bytes) {
    return {.bytes = bytes.size(), .way = BodyWay::kHere, .here = {bytes}, .at = {}};
  }
  static PostCall call_of(std::uint64_t id, std::uint32_t rank, CallBody body) {
    PostCall call;
    call.id = id;
    call.mesh = "work";
    call.ranks = {{.first = rank, .count = 1, .step = 1}};
    call.target = {"a", "f", "x"};
    call.body = std::move(body);
    return call;
  }
};

}  // namespace monarch::post
