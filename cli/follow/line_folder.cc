#include "cli/follow/line_folder.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

void LineFolder::add(const LineSource& source, std::string_view line, std::uint8_t end, LineTime time) {
  std::string key = text(source.mesh, '\0', static_cast<char>(end), line);
  std::uint64_t& last = last_[{source.mesh, source.rank}];
  auto& same = by_key_[key];
  const auto found = same.upper_bound(last);
  if (found != same.end()) {
    last = *found;
    waiting_[static_cast<std::size_t>(last - first_number_)].folded.sources.add(source);
    return;
  }
  last = first_number_ + waiting_.size();
  same.insert(last);
  bytes_ += line.size();
  waiting_.push_back({.folded = {.sources = LineSources(source), .line = std::string(line), .end = end, .time = time},
                      .key = std::move(key)});
}

// Nobody is left who could join.
bool LineFolder::complete(const FoldedLine& line) const {
  return line.sources.first.mesh_ranks != 0 && line.sources.ranks.size() == line.sources.first.mesh_ranks;
}

Instant LineFolder::due() const {
  if (waiting_.empty()) return Instant::never();
  return complete(waiting_.front().folded) ? waiting_.front().folded.time.now
                                           : waiting_.front().folded.time.now + kWindow;
}

std::optional<FoldedLine> LineFolder::take_due(Instant now) {
  if (waiting_.empty()) return std::nullopt;
  if (now < due() && waiting_.size() <= kMostLines && bytes_ <= kMostBytes) return std::nullopt;
  return take();
}

std::optional<FoldedLine> LineFolder::take() {
  if (waiting_.empty()) return std::nullopt;
  Waiting front = std::move(waiting_.front());
  waiting_.pop_front();
  const auto same = by_key_.find(front.key);
  if (same != by_key_.end()) {
    same->second.erase(first_number_);
    if (same->second.empty()) by_key_.erase(same);
  }
  ++first_number_;
  bytes_ -= front.folded.line.size();
  return std::move(front.folded);
}

}  // namespace monarch
