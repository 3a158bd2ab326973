#include "supervisor/core/health/output_losses.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostTold = 16;  // hosts: a verdict has to fit into a record

}  // namespace

std::optional<OutputLossNote> OutputLosses::note(HostId host, const std::string& name, std::uint64_t lost_bytes,
                                                 const std::string& failure, Instant now) {
  if (lost_bytes == 0 && failure.empty() && !hosts_.contains(host)) return std::nullopt;
  Host& known = hosts_[host];
  known.name = name;
  const std::uint64_t before = std::exchange(known.of_daemon, lost_bytes);
  known.bytes += lost_bytes >= before ? lost_bytes - before : lost_bytes;
  known.failure = failure;
  if (!failure.empty()) known.last_failure = failure;
  const bool fails = !failure.empty();
  // Between two beats it can begin and be over.
  const bool was_short = !fails && !known.told && known.bytes > known.told_bytes;
  if ((fails == known.told && !was_short) || !known.budget.take(now)) return std::nullopt;
  known.told = fails;
  known.told_bytes = known.bytes;
  if (!fails && !was_short) {
    return OutputLossNote{
        .message = text(name, ": what ranks write is kept again; ", known.bytes, " bytes of it are in no file")};
  }
  const std::string why = fails ? text(": ", printable(failure)) : "";
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
