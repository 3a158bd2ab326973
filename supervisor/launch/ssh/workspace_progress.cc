#include "supervisor/launch/ssh/workspace_progress.h"

#include <algorithm>
#include <vector>

#include "supervisor/workspace/scan.h"
#include "transport/base/text.h"

namespace monarch {

std::optional<std::string> WorkspaceProgress::note(const std::string& host, const WorkspaceSent& sent, Instant now) {
  if (sent.over) {
    under_way_.erase(host);
    have_all_ += sent.has_all ? 1U : 0U;
  } else {
    under_way_[host] = sent;
  }
  if (said_ == Instant::never()) said_ = now;
  if (under_way_.empty()) {
    said_ = Instant::never();  // what is sent later begins anew
    return std::nullopt;
  }
  if (now < said_ + kEvery) return std::nullopt;
  said_ = now;
  return words();
}

std::string WorkspaceProgress::words() const {
  std::vector<std::pair<std::string, WorkspaceSent>> slowest(under_way_.begin(), under_way_.end());
  std::stable_sort(slowest.begin(), slowest.end(), [](const auto& one, const auto& other) {
    return one.second.of - one.second.bytes > other.second.of - other.second.bytes;
  });
  std::vector<std::string> named;
  for (const auto& [host, sent] : slowest) {
    if (named.size() == kNamed) break;
    named.push_back(text(host, " ", amount_text(sent.bytes), " of ", amount_text(sent.of)));
  }
  const std::size_t more = slowest.size() - named.size();
  return text("sending the workspace: ", join(named, ", "), more > 0 ? text(" and ", more, " more hosts") : "",
              have_all_ > 0 ? text("; ", have_all_, have_all_ == 1 ? " host has it" : " hosts have it") : "");
}

}  // namespace monarch
