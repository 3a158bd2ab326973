#pragma once

// What our two output streams lead to, and whether to colour them: each is judged separately. Meaning is never in the
// colour alone.
//
// Thread: a value.

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/term/ci_runner.h"
#include "cli/term/environment.h"
#include "transport/base/result.h"

namespace monarch {

enum class ColourWhen : std::uint8_t { kAuto, kAlways, kNever };
Result<ColourWhen> parse_colour_when(std::string_view written);

// `auto`: a terminal that is not dumb, and no NO_COLOR; FORCE_COLOR and CLICOLOR_FORCE make it colour without a
// terminal.
bool use_colour(ColourWhen when, bool is_terminal, const Environment& env);

enum class Colour : std::uint8_t { kNone, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan, kBold, kDim };

// `text` between the escapes of that colour, or as it is.
std::string paint(Colour colour, std::string_view text, bool enabled);
std::string_view colour_start(Colour colour);
std::string_view colour_end();

// The same colour for the same host, in every run.
Colour host_colour(std::string_view host);

// The first write to stdout that failed; 0 while all is well.
struct OutputLoss {
  int error = 0;
  int of_stderr = 0;
};

struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool err_live = false;  // and one that can move its cursor: a dumb one is told what a pipe is told
  bool out_is_file = false;
  std::size_t out_columns = 0;  // of a terminal; 0: lines may be of any length
  bool out_colour = false;
  bool err_colour = false;
  bool quiet = false;
  CiRunner runner;  // of a CI job, if our words go to its log
  // Of stderr's terminal, where it is another machine's; 0: it is this one's, which is asked.
  std::uint32_t err_columns = 0;
  int widths = -1;                 // the descriptor that holds it as it is now
  OutputLoss* out_loss = nullptr;  // main.cc's, of the program

  // Asks the system about descriptors 1 and 2, or MONARCH_TERMINAL what is behind them.
  static Terminal of_this_process(const Environment& env);
  // Fills in the colours, and which runner reads this.
  void decide_colours(ColourWhen when, const Environment& env);
  // Columns of stderr's terminal as it is now; 80 if it does not say.
  std::size_t columns() const;
};

}  // namespace monarch
