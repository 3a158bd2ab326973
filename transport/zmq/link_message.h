#pragma once

// How our frames travel over a ZeroMQ link: one part for the header, one for the payload, so that a payload is handed
// on without a copy.
//
// Thread: pure functions.

#include <string>
#include <utility>
#include <vector>

#include "transport/wire/frame.h"
#include "transport/zmq/frame.h"

namespace monarch {

inline std::vector<ZmqFrame> link_message(const FrameHeader& header, std::string payload) {
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::copy(encode_header(header)));
  frames.push_back(ZmqFrame::take(std::move(payload)));
  return frames;
}

}  // namespace monarch
