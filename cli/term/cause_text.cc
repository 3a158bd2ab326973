#include "cli/term/cause_text.h"

#include "transport/base/text.h"

namespace monarch {

std::string cause_text(const FirstCause& cause) {
  std::string out;
  if (cause.rank) {
    out = text(cause.mesh, "/", *cause.rank);
    if (cause.gang && cause.gang_rank) out += text(" (gang ", *cause.gang, ", RANK ", *cause.gang_rank, ")");
    if (!cause.host.empty()) out += text(" on ", cause.host);
  } else if (!cause.host.empty()) {
    out = text("host ", cause.host);
  }
  if (cause.pid != 0) out += text(", pid ", cause.pid);
  // What happened to a host names it already.
  if (!cause.rank && cause.summary.find(cause.host) != std::string::npos) out.clear();
  return printable(out.empty() ? cause.summary : text(out, ": ", cause.summary));
}

}  // namespace monarch
