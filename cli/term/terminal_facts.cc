#include "cli/term/terminal_facts.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <vector>

#include "transport/base/text.h"

namespace monarch {

namespace {

StreamFacts facts_of(int fd) {
  struct stat what {};
  if (::fstat(fd, &what) == 0 && S_ISREG(what.st_mode)) return {.kind = StreamKind::kFile};
  if (::isatty(fd) != 1) return {};
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0;
  return {.kind = StreamKind::kTerminal, .columns = known ? size.ws_col : 0U};
}

std::string stream_text(const StreamFacts& stream) {
  switch (stream.kind) {
    case StreamKind::kOther: return "other";
    case StreamKind::kFile: return "file";
    case StreamKind::kTerminal: return text("terminal:", stream.columns);
  }
  return "other";
}

template <class Number>
std::optional<Number> parse_number(std::string_view word, Number most) {
  Number number{};
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || number < 0 || number > most) return {};
  return number;
}

std::optional<StreamFacts> parse_stream(std::string_view word) {
  if (word == "other") return StreamFacts{};
  if (word == "file") return StreamFacts{.kind = StreamKind::kFile};
  constexpr std::string_view kTerminal = "terminal:";
  if (!word.starts_with(kTerminal)) return std::nullopt;
  const auto columns = parse_number<std::int64_t>(word.substr(kTerminal.size()), UINT16_MAX);
  if (!columns) return std::nullopt;
  return StreamFacts{.kind = StreamKind::kTerminal, .columns = static_cast<std::uint32_t>(*columns)};
}

std::vector<std::string_view> words_of(std::string_view rest) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t blank = rest.find(' ');
    words.push_back(rest.substr(0, blank));
    if (blank == std::string_view::npos) return words;
    rest.remove_prefix(blank + 1);
  }
}

}  // namespace

TerminalFacts TerminalFacts::of_this_process() {
  return {.out = facts_of(STDOUT_FILENO), .err = facts_of(STDERR_FILENO)};
}

std::string to_text(const TerminalFacts& facts) {
  const std::string streams = text(stream_text(facts.out), " ", stream_text(facts.err));
  return facts.widths < 0 ? streams : text(streams, " ", facts.widths);
}

std::optional<TerminalFacts> parse_terminal_facts(std::string_view written) {
  const std::vector<std::string_view> words = words_of(written);
  if (words.size() < 2 || words.size() > 3) return std::nullopt;
  const auto out = parse_stream(words[0]);
  const auto err = parse_stream(words[1]);
  if (!out || !err) return std::nullopt;
  if (words.size() == 2) return TerminalFacts{.out = *out, .err = *err};
  const auto widths = parse_number<int>(words[2], INT16_MAX);
  if (!widths) return std::nullopt;
  return TerminalFacts{.out = *out, .err = *err, .widths = *widths};
}

std::optional<TerminalWidths> read_terminal_widths(int fd) {
  std::array<std::uint32_t, 2> widths{};
  if (fd < 0 || ::pread(fd, widths.data(), sizeof widths, 0) != static_cast<long>(sizeof widths)) return std::nullopt;
  return TerminalWidths{.out = widths[0], .err = widths[1]};
}

void write_terminal_widths(int fd, const TerminalWidths& widths) {
  const std::array<std::uint32_t, 2> both = {widths.out, widths.err};
  (void)!::pwrite(fd, both.data(), sizeof both, 0);  // a width that stays as it was is all that can come of it
}

}  // namespace monarch
