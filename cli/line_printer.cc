#include "cli/line_printer.h"

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
  if (options_.runner.is_one()) {
    const bool ours_in_front = options_.style == LineStyle::kPrefixed && !options_.prefix.written();
    out.append(options_.runner.as_text(printable(line), !ours_in_front));
  } else if (options_.for_terminal) {
    out.append(printable(line));
  } else {
    out.append(line);
  }
  const bool exact = options_.style == LineStyle::kBare && !escapes();
  if (end == LineEnd::kNewline || !exact || options_.fold) out.push_back('\n');
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
    if (open.partial.empty() && line.size() <= kLongestLine) {
      emit(open, line, LineEnd::kNewline, out);
    } else {
      keep(open, line, out);
      emit(open, open.partial, LineEnd::kNewline, out);
      open.partial.clear();
    }
    bytes.remove_prefix(newline + 1);
  }
}

// A carriage return ends a line too (a progress bar would write over its prefix), but none is made of "\r\n".
void LinePrinter::feed_terminal(Open& open, std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (open.after_return && bytes.front() == '\n') {
      open.after_return = false;
      bytes.remove_prefix(1);
      continue;
    }
    open.after_return = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) return keep(open, bytes, out);
    keep(open, bytes.substr(0, end), out);
    open.after_return = bytes[end] == '\r';
    const bool empty_return =
        open.after_return && open.partial.empty() && (end + 1 >= bytes.size() || bytes[end + 1] != '\n');
    if (empty_return) {
      open.after_return = false;  // nothing was written before the return
    } else {
      emit(open, open.partial, LineEnd::kNewline, out);
    }
    open.partial.clear();
    bytes.remove_prefix(end + 1);
  }
}

void LinePrinter::feed(std::uint64_t stream, const LineSource& source, std::string_view bytes, std::string& out,
                       LineTime at) {
  now_ = at;
  Open& entry = open(stream, source);
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
  if (!found->second.partial.empty()) emit(found->second, found->second.partial, LineEnd::kEndOfStream, out);
  open_.erase(found);
}

void LinePrinter::finish_all(std::string& out) {
  while (!open_.empty()) finish(open_.begin()->first, out);
  while (const auto folded = folder_.take()) write_folded(*folded, out);
}

}  // namespace monarch
