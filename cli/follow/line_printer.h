#pragma once

// LinePrinter: bytes of many ranks' streams, whole lines of one stream at a time, each with the name of its rank in
// front. No byte is lost: a line that never ends is shown in pieces, the last one of a stream at its end. What has no
// newline yet is shown once nothing has come for kQuiet, and marked as going on; of what carriage returns write over, a
// progress bar, the newest twice a second: on a terminal those between are passed over. Patterns and folding see whole
// lines.
//
// It appends to a buffer and does no I/O. Without prefixes and off a terminal the bytes of a single stream pass
// unchanged.
//
// Thread: one. Lifetime: the viewer's.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "cli/follow/line_folder.h"
#include "cli/follow/line_pattern.h"
#include "cli/follow/line_source.h"
#include "cli/follow/prefix_format.h"
#include "cli/term/ci_runner.h"
#include "cli/term/terminal.h"

namespace monarch {

enum class LineStyle : std::uint8_t {
  kPrefixed,  // [mesh/rank@host] line
  kBare,      // line
  kJson,      // {"v":1,"type":"output",…}
};

// What was asked for.
struct LineOptions {
  LineStyle style = LineStyle::kPrefixed;
  PrefixFormat prefix = {};              // of kPrefixed
  bool fold = false;                     // not with kJson
  std::optional<LinePattern> only = {};  // lines that it does not match are left out
};

struct LinePrinterOptions {
  LineStyle style = LineStyle::kPrefixed;
  bool for_terminal = false;  // what could steer it is escaped, and a carriage return ends a line
  CiRunner runner = {};       // the same, and what that runner would obey
  bool colour = false;
  PrefixFormat prefix = {};
  bool fold = false;
  std::optional<LinePattern> only = {};
};

class LinePrinter {
 public:
  explicit LinePrinter(LinePrinterOptions options) : options_(std::move(options)) {}

  // `stream` is the caller's key of the stream. Complete lines go to `out`, the rest waits for the next bytes.
  void feed(std::uint64_t stream, const LineSource& source, std::string_view bytes, std::string& out, LineTime at = {});
  // The stream has ended: an unfinished line is shown.
  void finish(std::uint64_t stream, std::string& out);
  void finish_all(std::string& out);

  // What has no newline yet: shows what is due; when the next is.
  void show_quiet(Instant now, std::string& out);
  Instant next_quiet() const;
  static constexpr Duration kQuiet = Duration::milliseconds(500);

  // Lines that wait to be folded: shows those that have waited long enough; when the next one has.
  void show_folded(Instant now, std::string& out);
  Instant next_fold() const { return folder_.due(); }

  // A longer line is shown in pieces of this size.
  static constexpr std::size_t kLongestLine = 64U << 10U;

 private:
  struct Open {
    LineSource source;
    std::string before;   // of every line: the prefix, or the front of a JSON object
    std::string partial;  // the line so far
    bool after_return = false;
    bool goes_on = false;  // what came before `partial` is shown, and marked
    Instant began;         // the first byte of `partial` came
    Instant fed;           // the last one did
    // On a terminal: what a carriage return ended, and the next one may write over.
    std::optional<std::string> bar = {};
    std::optional<Instant> bar_shown = {};
  };
  enum class LineEnd : std::uint8_t { kNewline, kCut, kGoesOn, kEndOfStream };

  bool escapes() const {
    return options_.for_terminal || (options_.runner.is_one() && options_.style != LineStyle::kJson);
  }
  // Nothing is in front of a line or behind it: the bytes are the streams' own.
  bool exact() const { return options_.style == LineStyle::kBare && !escapes() && !options_.fold; }
  bool shows_partial() const { return !options_.fold && !options_.only; }
  Open& open(std::uint64_t stream, const LineSource& source);
  Instant due(const Open& open) const;
  void show_partial(Open& open, std::string& out);
  void end_line(Open& open, std::string& out);
  void end_bar(Open& open, std::string& out);
  void show_bar(Open& open, std::string& out);
  void emit(const Open& open, std::string_view line, LineEnd end, std::string& out);
  void write(std::string_view before, std::string_view line, LineEnd end, std::string& out) const;
  void write_folded(const FoldedLine& folded, std::string& out) const;
  std::string before_of(const LineSources& sources, WallTime time) const;
  void feed_terminal(Open& open, std::string_view bytes, std::string& out);
  void feed_lines(Open& open, std::string_view bytes, std::string& out);
  void keep(Open& open, std::string_view rest, std::string& out);

  LinePrinterOptions options_;
  std::map<std::uint64_t, Open> open_;
  const Open* unended_ = nullptr;  // exact(): whose bytes were shown last, and without a newline
  LineFolder folder_;
  LineTime now_;  // of the bytes that are fed
};

}  // namespace monarch
