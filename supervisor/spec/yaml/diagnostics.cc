#include "supervisor/spec/yaml/diagnostics.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kLongestLineShown = 160;  // bytes; of a longer line the part around the caret is shown
constexpr std::size_t kBytesBeforeCaret = 60;

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kYellow = "\x1b[1;33m";
constexpr std::string_view kBlue = "\x1b[1;34m";
constexpr std::string_view kPlain = "\x1b[0m";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::size_t characters(std::string_view bytes) {
  return static_cast<std::size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char c) { return !continues_character(c); }));
}

// Byte offset of the character number `index`, or the end.
std::size_t offset_of_character(std::string_view bytes, std::size_t index) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (continues_character(bytes[i])) continue;
    if (seen++ == index) return i;
  }
  return bytes.size();
}

std::string_view line_of(std::string_view source, std::uint32_t line) {
  if (source.starts_with("\xEF\xBB\xBF")) source.remove_prefix(3);  // a byte order mark is no part of the text
  for (std::uint32_t i = 1; i < line; ++i) {
    const std::size_t end = source.find('\n');
    if (end == std::string_view::npos) return {};
    source.remove_prefix(end + 1);
  }
  source = source.substr(0, source.find('\n'));
  if (source.ends_with('\r')) source.remove_suffix(1);
  return source;
}

// As wide as `shown`, invisible; tabs stay so that what follows stands under what it belongs to.
std::string blank_like(std::string_view shown) {
  std::string out;
  for (const char c : shown) {
    if (!continues_character(c)) out.push_back(c == '\t' ? '\t' : ' ');
  }
  return out;
}

struct Excerpt {
  std::string before;  // of the caret, all three as printed
  std::string marked;
  std::string after;
};

Excerpt excerpt_of(std::string_view line, const OtherPlace& place) {
  std::size_t begin = offset_of_character(line, place.column == 0 ? 0 : place.column - 1);
  std::size_t end = begin + offset_of_character(line.substr(begin), place.length);
  Excerpt out;
  if (line.size() > kLongestLineShown) {
    std::size_t from = begin > kBytesBeforeCaret ? begin - kBytesBeforeCaret : 0;
    // A character has at most three more bytes; what a flag says need not be UTF-8 at all.
    for (int more = 0; more < 3 && from > 0 && continues_character(line[from]); ++more) --from;
    std::size_t to = std::min(line.size(), from + kLongestLineShown);
    for (int more = 0; more < 3 && to < line.size() && continues_character(line[to]); ++more) ++to;
    const bool cut = to < line.size();
    line = line.substr(from, to - from);
    begin = std::min(begin - from, line.size());
    end = std::clamp(end - from, begin, line.size());
    if (from > 0) out.before = "...";
    if (cut) out.after = "...";
  }
  out.before += printable(line.substr(0, begin));
  out.marked = printable(line.substr(begin, end - begin));
  out.after = printable(line.substr(end)) + out.after;
  return out;
}

class Painter {
 public:
  explicit Painter(bool colour) : colour_(colour) {}
  std::string operator()(std::string_view style, std::string_view what) const {
    return colour_ ? text(style, what, kPlain) : std::string(what);
  }

 private:
  bool colour_;
};

struct Shown {
  const OtherPlace& place;
  std::string_view text;   // of its source
  std::string_view arrow;  // in front of the file's name
  std::string_view style;  // of the carets
  std::string gutter;      // as wide as the longest number of a line
};

std::string excerpt(const Shown& shown, const Painter& paint) {
  const OtherPlace& place = shown.place;
  const Excerpt lines = excerpt_of(line_of(shown.text, place.line), place);
  const std::string carets(std::max<std::size_t>(1, characters(lines.marked)), '^');
  const std::string label = place.label.empty() ? "" : " " + printable(place.label);
  const std::string number = text(place.line);
  const std::string pad = shown.gutter.substr(std::min(number.size(), shown.gutter.size()));
  std::string out = text(shown.gutter, paint(kBlue, shown.arrow), " ", printable(place.file), ":", place.line, ":",
                         place.column, "\n");
  out += text(shown.gutter, paint(kBlue, " |"), "\n");
  out += text(paint(kBlue, text(number, pad, " |")), " ", lines.before, lines.marked, lines.after, "\n");
  out +=
      text(shown.gutter, paint(kBlue, " |"), " ", blank_like(lines.before), paint(shown.style, carets + label), "\n");
  return out;
}

std::string_view source_of(const OtherPlace& place, std::span<const std::string_view> sources) {
  return place.source < sources.size() ? sources[place.source] : std::string_view();
}

std::string render_one(const Diagnostic& diagnostic, std::span<const std::string_view> sources, RenderOptions options) {
  const Painter paint(options.colour);
  const bool error = diagnostic.severity == DiagnosticSeverity::kError;
  const std::string_view strong = error ? kRed : kYellow;
  std::string out = paint(strong, text(error ? "error[" : "warning[", diagnostic.id, "]"));
  out += paint(kBold, text(": ", printable(diagnostic.message))) + "\n";
  const OtherPlace place{.file = diagnostic.file,
                         .source = diagnostic.source,
                         .line = diagnostic.line,
                         .column = diagnostic.column,
                         .length = diagnostic.length,
                         .label = diagnostic.label};
  const std::uint32_t other_line = diagnostic.other ? diagnostic.other->line : 0;
  const std::string gutter(text(std::max(diagnostic.line, other_line)).size(), ' ');
  if (diagnostic.line == 0) {
    out += paint(kBlue, "  -->") + " " + printable(diagnostic.file) + "\n";
  } else {
    out += excerpt({place, source_of(place, sources), "-->", strong, gutter}, paint);
  }
  if (other_line > 0) {
    out += excerpt({*diagnostic.other, source_of(*diagnostic.other, sources), ":::", kBlue, gutter}, paint);
  }
  if (!diagnostic.help.empty()) {
    out += text(gutter, paint(kBlue, " ="), " ", paint(kBold, "help:"), " ", printable(diagnostic.help), "\n");
  }
  return out;
}

}  // namespace

std::string render(const Diagnostic& diagnostic, std::string_view source, RenderOptions options) {
  // Whichever of the texts it is.
  const std::vector<std::string_view> sources(diagnostic.source + std::size_t{1}, source);
  return render_one(diagnostic, sources, options);
}

std::string render(const std::vector<Diagnostic>& diagnostics, std::string_view source, RenderOptions options) {
  return render(diagnostics, std::span(&source, 1), options);
}

std::string render(const std::vector<Diagnostic>& diagnostics, std::span<const std::string_view> sources,
                   RenderOptions options) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!out.empty()) out += "\n";
    out += render_one(diagnostic, sources, options);
  }
  return out;
}

namespace {

// A message may quote what a file says; a kilobyte of it helps nobody.
std::string shortened(std::string message) {
  constexpr std::size_t kLongest = 400;
  if (message.size() <= kLongest) return message;
  std::size_t end = kLongest;
  while (end > 0 && continues_character(message[end])) --end;
  return message.substr(0, end) + "...";
}

}  // namespace

std::string quoted_value(std::string_view value) {
  constexpr std::size_t kLongestQuote = 60;
  return value.size() <= kLongestQuote ? text("`", value, "`") : text("`", value.substr(0, kLongestQuote), "...`");
}

std::uint32_t Report::add_source(std::string file, std::string_view source) {
  sources_.push_back({std::move(file), source});
  return static_cast<std::uint32_t>(sources_.size() - 1);
}

void Report::error(std::string_view id, Place place, Fault fault) {
  MONARCH_ASSERT(find_error(id) != nullptr);
  fault.message = shortened(std::move(fault.message));
  fault.label = shortened(std::move(fault.label));
  fault.help = shortened(std::move(fault.help));
  if (fault.other) fault.other->label = shortened(std::move(fault.other->label));
  found_.push_back({id, place, std::move(fault)});
}

OtherPlace Report::shown(const Place& place) const {
  const Source source = place.source < sources_.size() ? sources_[place.source] : Source{};
  const std::string_view line = place.line == 0 ? std::string_view() : line_of(source.text, place.line);
  const std::size_t begin = std::min<std::size_t>(line.size(), place.column == 0 ? 0 : place.column - 1);
  return {.file = source.file,
          .source = place.source,
          .line = place.line,
          .column = place.line == 0 ? 0 : static_cast<std::uint32_t>(characters(line.substr(0, begin)) + 1),
          .length = static_cast<std::uint32_t>(characters(line.substr(begin, place.length))),
          .label = {}};
}

std::vector<Diagnostic> Report::diagnostics() const {
  std::vector<const Found*> sorted;
  for (const Found& found : found_) sorted.push_back(&found);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Found* a, const Found* b) {
    return std::tuple(a->place.source, a->place.line, a->place.column) <
           std::tuple(b->place.source, b->place.line, b->place.column);
  });
  std::vector<Diagnostic> out;
  for (const Found* found : sorted) {
    if (out.size() == kMostShown) {
      out.push_back({.id = "E0012",
                     .file = out.back().file,
                     .source = out.back().source,
                     .message = text(found_.size() - kMostShown, " more errors")});
      break;
    }
    const OtherPlace place = shown(found->place);
    out.push_back({.id = std::string(found->id),
                   .file = place.file,
                   .source = place.source,
                   .line = place.line,
                   .column = place.column,
                   .length = place.length,
                   .message = found->fault.message,
                   .label = found->fault.label,
                   .help = found->fault.help});
    if (!found->fault.other) continue;
    out.back().other = shown(found->fault.other->place);
    out.back().other->label = found->fault.other->label;
  }
  return out;
}

}  // namespace monarch
