#include "cli/follow/line_printer.h"

#include <algorithm>
#include <utility>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string front_of_json(const LineSource& source) {
  std::string front = to_json(Json::object({{"v", 1},
                                            {"type", "output"},
                                            {"mesh", source.mesh},
                                            {"rank", source.rank},
                                            {"host", source.host},
                                            {"generation", source.generation},
                                            {"stream", source.stream == OutputStream::kStdout ? "stdout" : "stderr"}}));
  front.pop_back();  // the object goes on with the line
  return front + ",\"line\":";
}

constexpr std::string_view kGoesOnMark = "…";

// What a progress bar shows now: behind its last carriage return that something follows.
std::string_view newest(std::string_view partial) {
  if (partial.ends_with('\r')) partial.remove_suffix(1);
  const std::size_t before = partial.rfind('\r');
  return before == std::string_view::npos ? partial : partial.substr(before + 1);
}

// A cut must not split a character: where the last bytes begin one that goes on, they stay for the next piece.
std::size_t whole_characters(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back < bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;  // a continuation: its lead is further left
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? bytes.size() - back : bytes.size();
  }
  return bytes.size();
}

}  // namespace

std::string LinePrinter::before_of(const LineSources& sources, WallTime time) const {
  switch (options_.style) {
    case LineStyle::kBare: return fold_mark(sources);
    case LineStyle::kJson: return front_of_json(sources.first);
    case LineStyle::kPrefixed: {
      const std::string prefix = options_.prefix.expand(sources, time);
      const std::string_view name = std::string_view(prefix).substr(0, prefix.find_last_not_of(' ') + 1);
      const Colour colour = sources.hosts.size() == 1 ? host_colour(*sources.hosts.begin()) : Colour::kBold;
      return paint(name.empty() ? Colour::kNone : colour, name, options_.colour) + prefix.substr(name.size());
    }
  }
  return "";
}

LinePrinter::Open& LinePrinter::open(std::uint64_t stream, const LineSource& source) {
  const auto [entry, fresh] = open_.try_emplace(stream);
  Open& open = entry->second;
  if (fresh || open.source.host != source.host) {
    open.source = source;
    open.before = before_of(LineSources(source), {});
  }
  return open;
}

void LinePrinter::emit(const Open& open, std::string_view line, LineEnd end, std::string& out) {
  if (options_.only && !options_.only->matches(line)) return;
  if (unended_ != nullptr && unended_ != &open) out.push_back('\n');  // another's line begins on a line of its own
  unended_ = exact() && end != LineEnd::kNewline && !line.empty() ? &open : nullptr;
  if (options_.fold) return folder_.add(open.source, line, static_cast<std::uint8_t>(end), now_);
  const bool timed = options_.style == LineStyle::kPrefixed && options_.prefix.has_time();
  write(timed ? before_of(LineSources(open.source), now_.wall) : open.before, line, end, out);
}

void LinePrinter::write(std::string_view before, std::string_view line, LineEnd end, std::string& out) const {
  out.append(before);
  if (options_.style == LineStyle::kJson) {
    const std::size_t begin = out.size();
    append_json(out, Json(line));
    if (options_.runner.is_one())
      out.replace(begin, out.size() - begin, options_.runner.as_text_json(out.substr(begin)));
    if (end != LineEnd::kNewline) out.append(",\"complete\":false");
    out.append("}\n");
    return;
  }
  const bool marked = end == LineEnd::kGoesOn && !exact();
  if (options_.runner.is_one()) {
    const bool ours_in_front = options_.style == LineStyle::kPrefixed && !options_.prefix.written();
    out.append(options_.runner.as_text(printable(line), !ours_in_front));
  } else if (options_.for_terminal) {
    out.append(printable(line));
  } else {
    out.append(line);
  }
  if (marked) out.append(" ").append(kGoesOnMark);
  if (end == LineEnd::kNewline || !exact()) out.push_back('\n');
}

void LinePrinter::write_folded(const FoldedLine& folded, std::string& out) const {
  write(before_of(folded.sources, folded.time.wall), folded.line, static_cast<LineEnd>(folded.end), out);
}

void LinePrinter::show_folded(Instant now, std::string& out) {
  while (const auto folded = folder_.take_due(now)) write_folded(*folded, out);
}

void LinePrinter::keep(Open& open, std::string_view rest, std::string& out) {
  open.partial.append(rest);
  std::string_view pieces = open.partial;
  while (pieces.size() > kLongestLine) {
    const std::size_t size = whole_characters(pieces.substr(0, kLongestLine));
    emit(open, pieces.substr(0, size), LineEnd::kCut, out);
    pieces.remove_prefix(size);
  }
  if (pieces.size() < open.partial.size()) open.partial.erase(0, open.partial.size() - pieces.size());
}

void LinePrinter::feed_lines(Open& open, std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    if (newline == std::string_view::npos) return keep(open, bytes, out);
    const std::string_view line = bytes.substr(0, newline);
    if (open.partial.empty() && !open.goes_on && line.size() <= kLongestLine) {
      emit(open, line, LineEnd::kNewline, out);
    } else {
      keep(open, line, out);
      end_line(open, out);
    }
    bytes.remove_prefix(newline + 1);
  }
}

// Of a line that was shown in part: what is new of it.
void LinePrinter::end_line(Open& open, std::string& out) {
  const bool marked = open.goes_on && options_.style != LineStyle::kJson && !exact();
  const bool written_over = open.partial.starts_with('\r');
  if (marked && !open.partial.empty() && !written_over) open.partial.insert(0, text(kGoesOnMark, " "));
  if (!marked || !open.partial.empty()) emit(open, open.partial, LineEnd::kNewline, out);
  open.partial.clear();
  open.goes_on = false;
}

// At most one in kQuiet: what comes meanwhile writes over it, as on a terminal of its own.
void LinePrinter::end_bar(Open& open, std::string& out) {
  open.bar = std::exchange(open.partial, {});
  open.goes_on = false;
  if (!shows_partial() || !open.bar_shown || now_.now >= *open.bar_shown + kQuiet) show_bar(open, out);
}

void LinePrinter::show_bar(Open& open, std::string& out) {
  if (!open.bar) return;
  emit(open, *std::exchange(open.bar, std::nullopt), LineEnd::kNewline, out);
  open.bar_shown = now_.now;
}

Instant LinePrinter::due(const Open& open) const {
  Instant due = Instant::never();
  if (open.bar && open.bar_shown) due = *open.bar_shown + kQuiet;
  if (open.partial.empty()) return due;
  const bool is_bar = open.partial.find('\r') != std::string::npos;
  return std::min(due, (is_bar ? open.began : open.fed) + kQuiet);
}

Instant LinePrinter::next_quiet() const {
  Instant next = Instant::never();
  if (!shows_partial()) return next;
  for (const auto& [stream, open] : open_) next = std::min(next, due(open));
  return next;
}

void LinePrinter::show_quiet(Instant now, std::string& out) {
  if (!shows_partial()) return;
  now_.now = now;
  for (auto& [stream, open] : open_) {
    if (due(open) > now) continue;
    show_bar(open, out);
    if (!open.partial.empty()) show_partial(open, out);
  }
}

void LinePrinter::show_partial(Open& open, std::string& out) {
  const std::size_t whole = whole_characters(open.partial);
  std::string_view shown(open.partial.data(), whole);
  std::string line;
  if (!exact() && options_.style != LineStyle::kJson) {
    const bool written_over = shown.find('\r') != std::string_view::npos;
    line = text(open.goes_on && !written_over ? text(kGoesOnMark, " ") : "", newest(shown));
    shown = line;
  }
  if (!shown.empty()) emit(open, shown, LineEnd::kGoesOn, out);
  open.partial.erase(0, whole);
  open.goes_on = true;
  open.began = now_.now;
  open.fed = now_.now;
}

// A carriage return ends a line too (a progress bar would write over its prefix), but none is made of "\r\n".
void LinePrinter::feed_terminal(Open& open, std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (open.after_return && bytes.front() == '\n') {
      open.after_return = false;
      show_bar(open, out);
      bytes.remove_prefix(1);
      continue;
    }
    open.after_return = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) return keep(open, bytes, out);
    keep(open, bytes.substr(0, end), out);
    open.after_return = bytes[end] == '\r';
    const bool is_bar = open.after_return && (end + 1 >= bytes.size() || bytes[end + 1] != '\n');
    if (is_bar && open.partial.empty()) {
      open.after_return = false;  // nothing was written before the return
    } else if (is_bar) {
      end_bar(open, out);
    } else {
      open.bar.reset();  // written over
      end_line(open, out);
    }
    bytes.remove_prefix(end + 1);
  }
}

void LinePrinter::feed(std::uint64_t stream, const LineSource& source, std::string_view bytes, std::string& out,
                       LineTime at) {
  now_ = at;
  Open& entry = open(stream, source);
  if (entry.partial.empty() && !entry.goes_on) entry.began = at.now;
  entry.fed = at.now;
  if (escapes()) {
    feed_terminal(entry, bytes, out);
  } else {
    feed_lines(entry, bytes, out);
  }
  if (options_.fold) show_folded(at.now, out);
}

void LinePrinter::finish(std::uint64_t stream, std::string& out) {
  const auto found = open_.find(stream);
  if (found == open_.end()) return;
  Open& open = found->second;
  show_bar(open, out);
  if (!open.partial.empty()) {
    if (open.goes_on && options_.style != LineStyle::kJson && !exact()) open.partial.insert(0, text(kGoesOnMark, " "));
    emit(open, open.partial, LineEnd::kEndOfStream, out);
  }
  if (unended_ == &open && open_.size() == 1) unended_ = nullptr;  // the last bytes stay as they are
  if (unended_ == &open) {
    out.push_back('\n');
    unended_ = nullptr;
  }
  open_.erase(found);
}

void LinePrinter::finish_all(std::string& out) {
  while (!open_.empty()) finish(open_.begin()->first, out);
  while (const auto folded = folder_.take()) write_folded(*folded, out);
}

}  // namespace monarch
