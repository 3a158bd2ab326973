#pragma once

// encode_payload and decode_payload: the SDK's codec with our Result, for what travels between our own processes, and
// how the identities, times and errors of transport/base are written. The codec itself is monarch/codec.hpp.
//
// Thread: pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <monarch/codec.hpp>

#include "transport/base/ids.h"
#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/text.h"
#include "transport/base/time.h"

namespace monarch {

template <class Tag, class Int>
void codec_write(codec::Writer& writer, const StrongId<Tag, Int>& id) {
  codec::write(writer, id.value());
}
template <class Tag, class Int>
bool codec_read(codec::Reader& reader, StrongId<Tag, Int>& id) {
  Int value{};
  if (!codec::read(reader, value)) return false;
  id = StrongId<Tag, Int>(value);
  return true;
}

MONARCH_FIELDS(RankId, mesh, rank)
MONARCH_FIELDS(Generation, term, counter)
MONARCH_FIELDS(Incarnation, rank, generation)
MONARCH_FIELDS(WallTime, nanoseconds_since_epoch)
MONARCH_FIELDS(Error, code, message)

constexpr ErrorCode monarch_enum_max(ErrorCode) { return ErrorCode::kInternal; }

inline void codec_write(codec::Writer& writer, const JobUuid& job) {
  writer.binary(std::string_view(reinterpret_cast<const char*>(job.bytes.data()), job.bytes.size()));
}
inline bool codec_read(codec::Reader& reader, JobUuid& job) {
  std::string_view bytes;
  if (!reader.binary(bytes)) return false;
  if (bytes.size() != job.bytes.size()) return reader.fail("a job's uuid has 16 bytes");
  for (std::size_t i = 0; i < bytes.size(); ++i) job.bytes[i] = static_cast<std::uint8_t>(bytes[i]);
  return true;
}

// Nanoseconds; forever() keeps its meaning.
inline void codec_write(codec::Writer& writer, const Duration& duration) {
  writer.signed_integer(duration.count_nanoseconds());
}
inline bool codec_read(codec::Reader& reader, Duration& duration) {
  std::int64_t nanoseconds = 0;
  if (!codec::read(reader, nanoseconds)) return false;
  duration = Duration::nanoseconds(nanoseconds);
  return true;
}

// It means something only to a process on the same machine, since the same boot.
inline void codec_write(codec::Writer& writer, const Instant& instant) { codec_write(writer, instant.since_boot()); }
inline bool codec_read(codec::Reader& reader, Instant& instant) {
  Duration since_boot;
  if (!codec_read(reader, since_boot)) return false;
  instant = Instant::since_boot(since_boot);
  return true;
}

template <class T>
std::string encode_payload(const T& message) {
  return codec::encode(message);
}

// kInvalid where the payload is longer than `limit` (which bounds what decoding may allocate) or is not a T.
template <class T>
Result<T> decode_payload(std::string_view payload, std::size_t limit = limits::kControlPayloadBytes) {
  if (payload.size() > limit) {
    return Error{ErrorCode::kInvalid, text("a payload of ", payload.size(), " bytes is over the limit of ", limit)};
  }
  T message{};
  codec::DecodeError error;
  if (codec::decode(payload, message, error, {.items = limit})) return message;
  return Error{ErrorCode::kInvalid,
               text("decoding a payload: ", error.what, ", at byte ", error.offset, " of ", payload.size())};
}

}  // namespace monarch
