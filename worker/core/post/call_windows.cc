#include "worker/core/post/call_windows.h"

namespace monarch {

bool CallWindows::has_room(const Window& window, std::uint64_t bytes) const {
  return window.calls == 0 || (window.calls < limits_.window_calls && window.bytes + bytes <= limits_.window_bytes);
}

bool CallWindows::enter(const Part& part) {
  const std::uint64_t bytes = part.content->bytes();
  const CallContent& content = *part.content;
  Place place{.target = {part.call.door, {content.mesh, part.rank}, content.host, content.target.actor},
              .bytes = bytes,
              .waits = {}};
  Window& window = windows_[place.target];
  const bool goes = window.waiting.empty() && has_room(window, bytes);
  if (goes) {
    ++window.calls;
    window.bytes += bytes;
  } else {
    place.waits = next_++;
    window.waiting.emplace(*place.waits, part);
  }
  parts_.emplace(std::pair(part.call, part.rank), std::move(place));
  return goes;
}

void CallWindows::ended(const CallKey& call, Rank rank) {
  const auto part = parts_.find({call, rank});
  if (part == parts_.end()) return;
  const auto at = windows_.find(part->second.target);
  Window& window = at->second;
  if (part->second.waits) {
    window.waiting.erase(*part->second.waits);
  } else {
    --window.calls;
    window.bytes -= part->second.bytes;
  }
  parts_.erase(part);
  let_go(window);
  if (window.calls == 0 && window.waiting.empty()) windows_.erase(at);
}

void CallWindows::let_go(Window& window) {
  while (!window.waiting.empty()) {
    const auto first = window.waiting.begin();
    Place& place = parts_.at({first->second.call, first->second.rank});
    if (!has_room(window, place.bytes)) return;
    ++window.calls;
    window.bytes += place.bytes;
    place.waits.reset();
    ready_.push_back(std::move(first->second));
    window.waiting.erase(first);
  }
}

void CallWindows::left(DoorId door) {
  const auto of_it = [door](const auto& one) { return one.first.door == door; };
  std::erase_if(windows_, of_it);
  std::erase_if(parts_, [door](const auto& one) { return one.first.first.door == door; });
  std::erase_if(ready_, [door](const Part& one) { return one.call.door == door; });
}

}  // namespace monarch
