#pragma once

// TerminalFilter: of what another machine shows on a terminal of this one, all that the other half of a viewer writes
// passes: text, lines, colours, the erasing of a line and the way up over a line of progress. Any other control
// character or sequence, which could set a title, move the cursor elsewhere, or have the terminal answer, is shown as
// text instead of obeyed (X22, C22).
//
// Thread: a value; one for each stream, as a sequence may come in pieces.

#include <string>
#include <string_view>

namespace monarch {

class TerminalFilter {
 public:
  // What may be written now. The beginning of a sequence waits for its rest.
  std::string pass(std::string_view bytes);

 private:
  std::string held_;
};

}  // namespace monarch
