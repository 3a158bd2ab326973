#include "supervisor/spec/yaml/source_text.h"

#include <cstdint>
#include <string>

#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Length of the well-formed UTF-8 sequence at the front, 0 if there is none.
std::size_t sequence_length(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string hex_byte(char c) { return "0x" + to_hex(std::string_view(&c, 1)); }

class Scan {
 public:
  Scan(std::string_view source, Report& report, std::uint32_t number)
      : source_(source), report_(report), number_(number) {}

  bool run() {
    for (std::size_t i = 0; i < source_.size();) {
      if (source_[i] == '\n') {
        ++i;
        ++line_;
        line_start_ = i;
        in_indentation_ = true;
        continue;
      }
      const std::size_t length = check(i);
      if (length == 0) return false;
      i += length;
    }
    if (started_) return true;
    report_.error("E0010", {.source = number_},
                  {.message = "the file is empty", .help = "configs/hello.yaml is a small one to start from"});
    return false;
  }

 private:
  // Length of the character at `i`, 0 if it was refused.
  std::size_t check(std::size_t i) {
    const char c = source_[i];
    const std::size_t length = sequence_length(source_.substr(i));
    if (length == 0) return refuse("E0008", i, text("byte ", hex_byte(c), " is not UTF-8"), "save the file as UTF-8");
    if (c == '\r' && source_.substr(i + 1, 1) != "\n") {
      return refuse("E0008", i, "a carriage return that ends no line", "end lines with a newline");
    }
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7F) {
      return refuse("E0008", i, byte == 0 ? "a NUL byte" : text("control character ", hex_byte(c)),
                    "this is to be text; in a quoted one write \"\\x1b\" for such a character");
    }
    if (in_indentation_ && c == '\t' && !blank_from(i)) {
      return refuse("E0009", i, "a tab in the indentation",
                    "YAML indents with spaces: replace each tab, by two spaces say");
    }
    if (c == ' ' || c == '\t' || c == '\r') return length;
    if (!started_ && i == line_start_ && c == '%') {
      return refuse("E0011", i, "a directive", "remove the line: no %YAML or %TAG is needed");
    }
    if (in_indentation_ && c != '#') started_ = true;
    in_indentation_ = false;
    return length;
  }

  bool blank_from(std::size_t i) const {
    const std::size_t next = source_.find_first_not_of(" \t\r", i);
    return next == std::string_view::npos || source_[next] == '\n' || source_[next] == '#';
  }

  std::size_t refuse(std::string_view id, std::size_t at, std::string label, std::string help) {
    const auto column = static_cast<std::uint32_t>(at - line_start_ + 1);
    report_.error(id, {line_, column, 1, number_},
                  {.message = std::string(find_error(id)->title), .label = std::move(label), .help = std::move(help)});
    return 0;
  }

  std::string_view source_;
  Report& report_;
  std::uint32_t number_;
  std::uint32_t line_ = 1;
  std::size_t line_start_ = 0;
  bool in_indentation_ = true;
  bool started_ = false;  // something other than blanks and comments was seen
};

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string_view without_byte_order_mark(std::string_view source) {
  return source.starts_with("\xEF\xBB\xBF") ? source.substr(3) : source;
}

bool check_source(std::string_view source, Report& report, std::uint32_t number) {
  if (source.size() > limits::kSpecBytes) {
    report.error("E0002", {.source = number},
                 {.message = text("the file has more than ", limits::kSpecBytes, " bytes"),
                  .help = "data belongs into files of its own"});
    return false;
  }
  return Scan(source, report, number).run();
}

}  // namespace monarch
