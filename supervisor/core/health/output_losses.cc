#include "supervisor/core/health/output_losses.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostTold = 16;  // hosts: a verdict has to fit into a record

}  // namespace

std::optional<OutputLossNote> OutputLosses::note(HostId host, const std::string& name, std::uint64_t lost_bytes,
                                                 const std::string& failure) {
  if (lost_bytes == 0 && failure.empty() && !hosts_.contains(host)) return std::nullopt;
  Host& known = hosts_[host];
  known.name = name;
  const std::uint64_t before = std::exchange(known.of_daemon, lost_bytes);
  const std::uint64_t fresh = lost_bytes >= before ? lost_bytes - before : lost_bytes;
  known.bytes += fresh;
  const bool was_failing = !std::exchange(known.failure, failure).empty();
  if (!failure.empty()) known.last_failure = failure;
  if (was_failing && failure.empty()) {
    return OutputLossNote{
        .message = text(name, ": what ranks write is kept again; ", known.bytes, " bytes of it are in no file")};
  }
  // Between two beats it can begin and be over.
  if (was_failing || (failure.empty() && fresh == 0)) return std::nullopt;
  const std::string why = failure.empty() ? "" : text(": ", printable(failure));
  return OutputLossNote{
      .begins = true,
      .message = text(name, ": what ranks write is shown and in no file, ", known.bytes, " bytes so far", why)};
}

std::string OutputLosses::failure(HostId host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? "" : found->second.failure;
}

std::vector<std::string> OutputLosses::account() const {
  std::vector<std::string> lines;
  std::size_t untold = 0;
  for (const auto& [id, host] : hosts_) {
    if (host.bytes == 0) continue;
    if (lines.size() == kMostTold) {
      ++untold;
      continue;
    }
    lines.push_back(text(host.name, ": ", host.bytes, " bytes",
                         host.last_failure.empty() ? "" : text(" (", printable(host.last_failure), ")")));
  }
  if (untold > 0) lines.push_back(text(untold, " more hosts"));
  return lines;
}

}  // namespace monarch
