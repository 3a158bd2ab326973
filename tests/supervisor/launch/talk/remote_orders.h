#pragma once

// Orders and answers of a launch over SSH, for tests.
//
// Thread: values.

#include <string>

#include "supervisor/launch/talk/remote_conversation.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {

inline const RemoteMark kTestMark{
    .job_uuid = "00112233445566778899aabbccddeeff", .host_name = "node01", .job_id = "train-0001"};

inline std::string test_reply(const std::string& version = MONARCH_VERSION, const std::string& error = "",
                              BootstrapRefusal refusal = BootstrapRefusal::kOther) {
  BootstrapReply reply;
  reply.public_key = "the key";
  reply.keeper_pid = 4711;
  reply.version = version;
  reply.error = error;
  reply.refusal = refusal;
  Frame frame;
  frame.payload = encode_payload(reply);
  return encode_frame(frame);
}

inline std::string test_bootstrap() {
  Frame frame;
  frame.payload = encode_payload(Bootstrap{});
  return encode_frame(frame);
}

inline RemoteOrder test_order(RemotePurpose purpose = RemotePurpose::kStart) {
  return {.purpose = purpose,
          .mark = kTestMark,
          .file = {.sha256 = std::string(64, 'a'), .size = 10},
          .machine = "x86_64",
          .installed = "",
          .bootstrap = purpose == RemotePurpose::kStart ? test_bootstrap() : ""};
}

// Of three blobs.
inline RemoteOrder test_workspace_order() {
  RemoteOrder order = test_order(RemotePurpose::kWorkspace);
  order.manifest = "the manifest";
  order.blobs = 3;
  return order;
}

inline const LaunchFailure* failure_of(const RemoteConversation& conversation) {
  return conversation.answer() ? std::get_if<LaunchFailure>(&*conversation.answer()) : nullptr;
}

}  // namespace monarch
