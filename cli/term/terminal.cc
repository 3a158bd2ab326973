#include "cli/term/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>

#include "cli/term/terminal_facts.h"
#include "transport/base/text.h"

namespace monarch {

namespace {
constexpr std::size_t kColumns = 80;
}  // namespace

Result<ColourWhen> parse_colour_when(std::string_view written) {
  if (written == "auto") return ColourWhen::kAuto;
  if (written == "always") return ColourWhen::kAlways;
  if (written == "never") return ColourWhen::kNever;
  return Error{ErrorCode::kInvalid, text("`", printable(written), "` is not auto, always or never")};
}

bool use_colour(ColourWhen when, bool is_terminal, const Environment& env) {
  if (when != ColourWhen::kAuto) return when == ColourWhen::kAlways;
  if (!env.get("NO_COLOR").empty()) return false;  // no-color.org: set and not empty
  const auto forced = [&](std::string_view name) {
    const std::string value = env.get(name);
    return !value.empty() && value != "0";
  };
  if (forced("FORCE_COLOR") || forced("CLICOLOR_FORCE")) return true;
  return is_terminal && env.get("TERM") != "dumb";
}

std::string_view colour_start(Colour colour) {
  switch (colour) {
    case Colour::kNone: return "";
    case Colour::kRed: return "\x1b[31m";
    case Colour::kGreen: return "\x1b[32m";
    case Colour::kYellow: return "\x1b[33m";
    case Colour::kBlue: return "\x1b[34m";
    case Colour::kMagenta: return "\x1b[35m";
    case Colour::kCyan: return "\x1b[36m";
    case Colour::kBold: return "\x1b[1m";
    case Colour::kDim: return "\x1b[2m";
  }
  return "";
}

std::string_view colour_end() { return "\x1b[0m"; }

std::string paint(Colour colour, std::string_view words, bool enabled) {
  if (!enabled || colour == Colour::kNone) return std::string(words);
  return text(colour_start(colour), words, colour_end());
}

Colour host_colour(std::string_view host) {
  // Red and yellow are taken: they mean failed and suspect.
  constexpr std::array kChoices = {Colour::kCyan, Colour::kMagenta, Colour::kBlue, Colour::kGreen};
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : host) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return kChoices[hash % kChoices.size()];
}

Terminal Terminal::of_this_process(const Environment& env) {
  const auto told = parse_terminal_facts(env.get(kTerminalVariable));
  const TerminalFacts facts = told ? *told : TerminalFacts::of_this_process();
  Terminal terminal;
  terminal.out_is_terminal = facts.out.kind == StreamKind::kTerminal;
  terminal.err_is_terminal = facts.err.kind == StreamKind::kTerminal;
  terminal.out_columns = facts.out.columns;
  terminal.out_is_file = facts.out.kind == StreamKind::kFile;
  if (told) {
    terminal.err_columns = facts.err.columns;
    terminal.widths = facts.widths;
  }
  return terminal;
}

void Terminal::decide_colours(ColourWhen when, const Environment& env) {
  out_colour = use_colour(when, out_is_terminal, env);
  err_colour = use_colour(when, err_is_terminal, env);
  err_live = err_is_terminal && env.get("TERM") != "dumb";
  runner = err_is_terminal ? CiRunner() : CiRunner::of(env);
}

std::size_t Terminal::columns() const {
  if (const auto now = read_terminal_widths(widths); now && now->err > 0) return now->err;
  if (err_columns > 0) return err_columns;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return size.ws_col;
}

}  // namespace monarch
