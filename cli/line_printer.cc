#include "cli/line_printer.h"

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string front_of_lines(const LinePrinterOptions& options, const LineSource& source) {
  switch (options.style) {
    case LineStyle::kBare: return "";
    case LineStyle::kJson: {
      std::string front =
          to_json(Json::object({{"v", 1},
                                {"type", "output"},
                                {"mesh", source.mesh},
                                {"rank", source.rank},
                                {"host", source.host},
                                {"generation", source.generation},
                                {"stream", source.stream == OutputStream::kStdout ? "stdout" : "stderr"}}));
      front.pop_back();  // the object goes on with the line
      return front + ",\"line\":";
    }
    case LineStyle::kPrefixed: {
      const std::string name = text("[", source.mesh, "/", source.rank, "@", source.host, "]");
      return paint(host_colour(source.host), name, options.colour) + " ";
    }
  }
  return "";
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

LinePrinter::Open& LinePrinter::open(std::uint64_t stream, const LineSource& source) {
  const auto [entry, fresh] = open_.try_emplace(stream);
  Open& open = entry->second;
  if (fresh || open.source.host != source.host) {
    open.source = source;
    open.before = front_of_lines(options_, source);
  }
  return open;
}

void LinePrinter::emit(const Open& open, std::string_view line, LineEnd end, std::string& out) const {
  out.append(open.before);
  if (options_.style == LineStyle::kJson) {
    append_json(out, Json(line));
    if (end != LineEnd::kNewline) out.append(",\"complete\":false");
    out.append("}\n");
    return;
  }
  if (options_.for_terminal) {
    out.append(printable(line));
  } else {
    out.append(line);
  }
  const bool exact = options_.style == LineStyle::kBare && !options_.for_terminal;
  if (end == LineEnd::kNewline || !exact) out.push_back('\n');
}

void LinePrinter::keep(Open& open, std::string_view rest, std::string& out) const {
  open.partial.append(rest);
  std::string_view pieces = open.partial;
  while (pieces.size() > kLongestLine) {
    const std::size_t size = whole_characters(pieces.substr(0, kLongestLine));
    emit(open, pieces.substr(0, size), LineEnd::kCut, out);
    pieces.remove_prefix(size);
  }
  if (pieces.size() < open.partial.size()) open.partial.erase(0, open.partial.size() - pieces.size());
}

void LinePrinter::feed_lines(Open& open, std::string_view bytes, std::string& out) const {
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
void LinePrinter::feed_terminal(Open& open, std::string_view bytes, std::string& out) const {
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

void LinePrinter::feed(std::uint64_t stream, const LineSource& source, std::string_view bytes, std::string& out) {
  Open& entry = open(stream, source);
  if (options_.for_terminal) {
    feed_terminal(entry, bytes, out);
  } else {
    feed_lines(entry, bytes, out);
  }
}

void LinePrinter::finish(std::uint64_t stream, std::string& out) {
  const auto found = open_.find(stream);
  if (found == open_.end()) return;
  if (!found->second.partial.empty()) emit(found->second, found->second.partial, LineEnd::kEndOfStream, out);
  open_.erase(found);
}

void LinePrinter::finish_all(std::string& out) {
  while (!open_.empty()) finish(open_.begin()->first, out);
}

}  // namespace monarch
