#include "transport/wire/frame.h"

#include <utility>

#include "transport/base/little_endian.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kMagic = 0x6672'6e6d;  // "mnrf" in the order of the bytes

// Reads fields in order from a header whose length was checked.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  template <class Unsigned>
  Unsigned next() {
    return little_endian::get<Unsigned>(bytes_, std::exchange(at_, at_ + sizeof(Unsigned)));
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string encode_header(const FrameHeader& header) {
  using little_endian::put;
  std::string out;
  out.reserve(kFrameHeaderBytes);
  put(out, kMagic);
  put(out, header.version);
  put(out, header.type);
  for (const std::uint8_t byte : header.job.bytes) put(out, byte);
  put(out, header.term.value());
  put(out, header.process.rank.mesh.value());
  put(out, header.process.rank.rank.value());
  put(out, header.process.generation.term.value());
  put(out, header.process.generation.counter);
  put(out, header.seq);
  put(out, header.call);
  return out;
}

Result<FrameHeader> decode_header(std::string_view bytes) {
  if (bytes.size() != kFrameHeaderBytes) {
    return Error{ErrorCode::kInvalid, text("a frame's header has ", kFrameHeaderBytes, " bytes, not ", bytes.size())};
  }
  Fields fields(bytes);
  if (fields.next<std::uint32_t>() != kMagic)
    return Error{ErrorCode::kInvalid, "a frame does not start with our magic"};
  FrameHeader header;
  header.version = fields.next<std::uint16_t>();
  if (header.version != kFrameVersion) {
    return Error{ErrorCode::kUnsupported,
                 text("a frame of protocol version ", header.version, "; this build speaks ", kFrameVersion)};
  }
  header.type = fields.next<std::uint16_t>();
  for (std::uint8_t& byte : header.job.bytes) byte = fields.next<std::uint8_t>();
  header.term = Term(fields.next<std::uint64_t>());
  header.process.rank.mesh = MeshId(fields.next<std::uint32_t>());
  header.process.rank.rank = Rank(fields.next<std::uint32_t>());
  header.process.generation.term = Term(fields.next<std::uint64_t>());
  header.process.generation.counter = fields.next<std::uint64_t>();
  header.seq = fields.next<std::uint64_t>();
  header.call = fields.next<std::uint64_t>();
  return header;
}

std::string encode_frame(const Frame& frame) { return encode_header(frame.header) + frame.payload; }

Result<Frame> decode_frame(std::string_view bytes, std::size_t payload_limit) {
  MONARCH_ASSIGN(const FrameHeader header, decode_header(bytes.substr(0, kFrameHeaderBytes)));
  const std::string_view payload = bytes.substr(kFrameHeaderBytes);
  if (payload.size() > payload_limit) {
    return Error{ErrorCode::kInvalid, text("a frame's payload of ", payload.size(), " bytes is over ", payload_limit)};
  }
  return Frame{.header = header, .payload = std::string(payload)};
}

}  // namespace monarch
