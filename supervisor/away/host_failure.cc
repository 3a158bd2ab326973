#include "supervisor/away/host_failure.h"

#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {
constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;
}  // namespace

StartFailure start_failure_of(const std::string& host, const LaunchFailure& failure) {
  const std::string words = failure.words.empty()
                                ? std::string()
                                : text("; it said: ", printable(failure.words.substr(0, failure.words.find('\n'))));
  return {
      .exit_code = is_host_key(failure.kind) ? kExitHostKey : kExitUnreachable,
      .message = text(host, ": ", what_failed(failure), words,
                      "; the supervisor was to be there (`supervisor: {on: first}`), so no other host takes its place",
                      failure.again.empty() ? std::string() : text("; to see it again: ", failure.again)),
      .log_tail = {},
      .host = HostFailure{.host = host,
                          .kind = name_of(failure.kind),
                          .phase = failure.phase,
                          .elapsed_milliseconds = failure.elapsed.count_nanoseconds() / kNanosecondsPerMillisecond,
                          .message = printable(failure.message),
                          .again = failure.again}};
}

}  // namespace monarch
