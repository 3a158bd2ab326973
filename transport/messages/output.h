#pragma once

// What ranks write, over the bulk port, so that no beat waits behind it. The header names the process.
//
// Thread: values.

#include <cstdint>
#include <string>

#include "transport/messages/message.h"

namespace monarch {

enum class OutputStream : std::uint8_t {
  kStdout,
  kStderr,
  kErrorFile,  // TORCHELASTIC_ERROR_FILE, whole; Bootstrap::copied hosts alone, and never passed to a viewer
};
constexpr OutputStream monarch_enum_max(OutputStream) { return OutputStream::kErrorFile; }

// ---- daemon → supervisor ----

// A piece of a rank's output (rank and generation are the frame header's). Best effort: what is missing between two
// offsets is read again from the file.
struct Output {
  OutputStream stream = OutputStream::kStdout;
  std::uint64_t offset = 0;
  std::string bytes;
};
MONARCH_MESSAGE(Output, 32, stream, offset, bytes)

// What no file took, when that ended at `offset`. It is said once.
struct OutputUnkept : Output {};
MONARCH_MESSAGE(OutputUnkept, 34, stream, offset, bytes)

// What was asked for, or was about to be said, before `oldest` is no longer in the host's file: it was rotated away.
struct OutputGone {
  OutputStream stream = OutputStream::kStdout;
  std::uint64_t oldest = 0;
};
MONARCH_MESSAGE(OutputGone, 33, stream, oldest)

// ---- supervisor → daemon ----

// Say this stream again from `offset` on (rank and generation are the frame header's): what follows on it was missed.
struct OutputFrom {
  OutputStream stream = OutputStream::kStdout;
  std::uint64_t offset = 0;
};
MONARCH_MESSAGE(OutputFrom, 40, stream, offset)

}  // namespace monarch
