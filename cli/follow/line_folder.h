#pragma once

// LineFolder: lines that many ranks of a mesh write at about the same time become one line with all their names.
// Nothing is dropped: a line waits for its like for kWindow, then it is shown with whoever wrote it. The lines of each
// rank keep their order, so a line joins only one that comes after all that its rank has waiting.
//
// Thread: one. Lifetime: its printer's.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/follow/prefix_format.h"

namespace monarch {

struct FoldedLine {
  LineSources sources;
  std::string line;
  std::uint8_t end = 0;  // the printer's LineEnd
  LineTime time;         // of the first of them
};

class LineFolder {
 public:
  static constexpr Duration kWindow = Duration::milliseconds(250);
  // More lines or bytes wait for nobody: the oldest is due at once.
  static constexpr std::size_t kMostLines = 20'000;
  static constexpr std::size_t kMostBytes = 8U << 20U;

  void add(const LineSource& source, std::string_view line, std::uint8_t end, LineTime time);

  // The next line that waits no longer; nothing: none does.
  std::optional<FoldedLine> take_due(Instant now);
  // The next one in any case.
  std::optional<FoldedLine> take();
  // When the next one is due; never() while none waits.
  Instant due() const;

 private:
  struct Waiting {
    FoldedLine folded;
    std::string key;
  };
  bool complete(const FoldedLine& line) const;

  std::deque<Waiting> waiting_;
  std::uint64_t first_number_ = 1;                                       // of waiting_.front()
  std::unordered_map<std::string, std::set<std::uint64_t>> by_key_;      // numbers of waiting lines that say the same
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> last_;  // of each rank, the number of its last line
  std::size_t bytes_ = 0;
};

}  // namespace monarch
