#pragma once

// LinePrinter: bytes of many ranks' streams, whole lines of one stream at a time, each with the name of its rank in front. No byte
// is lost: a line that never ends is shown in pieces, the last one of a stream at its end.
//
// It appends to a buffer and does no I/O. Without prefixes and off a terminal the bytes of a single stream pass unchanged.
//
// Thread: one. Lifetime: the viewer's.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cli/terminal.h"
#include "transport/base/control_messages.h"

namespace monarch {

enum class LineStyle : std::uint8_t {
  kPrefixed,  // [mesh/rank@host] line
  kBare,      // line
  kJson,      // {"v":1,"type":"output",…}
};

struct LinePrinterOptions {
  LineStyle style = LineStyle::kPrefixed;
  bool for_terminal = false;  // what could steer it is escaped, and a carriage return ends a line
  bool colour = false;
};

// Who wrote the bytes.
struct LineSource {
  std::string mesh;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  std::string host;
  OutputStream stream = OutputStream::kStdout;
};

class LinePrinter {
 public:
  explicit LinePrinter(LinePrinterOptions options) : options_(options) {}

  // `stream` is the caller's key of the stream. Complete lines go to `out`, the rest waits for the next bytes.
  void feed(std::uint64_t stream, const LineSource& source, std::string_view bytes, std::string& out);
  // The stream has ended: an unfinished line is shown.
  void finish(std::uint64_t stream, std::string& out);
  void finish_all(std::string& out);

  // A longer line is shown in pieces of this size.
  static constexpr std::size_t kLongestLine = 64U << 10U;

 private:
  struct Open {
    LineSource source;
    std::string before;   // of every line: the prefix, or the front of a JSON object
    std::string partial;  // the line so far
    bool after_return = false;
  };
  enum class LineEnd : std::uint8_t { kNewline, kCut, kEndOfStream };

  Open& open(std::uint64_t stream, const LineSource& source);
  void emit(const Open& open, std::string_view line, LineEnd end, std::string& out) const;
  void feed_terminal(Open& open, std::string_view bytes, std::string& out) const;
  void feed_lines(Open& open, std::string_view bytes, std::string& out) const;
  void keep(Open& open, std::string_view rest, std::string& out) const;

  LinePrinterOptions options_;
  std::map<std::uint64_t, Open> open_;
};

}  // namespace monarch
