#include "supervisor/launch/talk/way_back.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {

namespace {

constexpr Duration kFirstRetry = Duration::milliseconds(500);
constexpr Duration kLongestRetry = Duration::seconds(10);

}  // namespace

std::string endpoint_at(const std::string& endpoint, const std::string& address) {
  const bool numeric_6 = address.find(':') != std::string::npos;
  const std::string host = numeric_6 ? text("[", address, "]") : address;
  return text(endpoint.substr(0, endpoint.find("//") + 2), host, endpoint.substr(endpoint.rfind(':')));
}

std::uint16_t endpoint_port(const std::string& endpoint) {
  std::uint16_t port = 0;
  const std::size_t colon = endpoint.rfind(':');
  const char* const end = endpoint.data() + endpoint.size();
  if (colon == std::string::npos) return 0;
  const auto [stopped, error] = std::from_chars(endpoint.data() + colon + 1, end, port);
  return error == std::errc() && stopped == end ? port : std::uint16_t{0};
}

std::optional<LaunchFailure> call_back_at(Bootstrap& there, const std::string& address, std::string_view untold) {
  in6_addr bytes{};
  if (::inet_pton(AF_INET, address.c_str(), &bytes) != 1 && ::inet_pton(AF_INET6, address.c_str(), &bytes) != 1) {
    return LaunchFailure{.kind = LaunchFailureKind::kCallBack,
                         .phase = "start",
                         .message = text(untold, address.empty() ? "" : text(" (`", printable(address), "`)"),
                                         ": say it in control.address")};
  }
  there.control_endpoint = endpoint_at(there.control_endpoint, address);
  there.bulk_endpoint = endpoint_at(there.bulk_endpoint, address);
  return std::nullopt;
}

std::string bootstrap_frame(const JobUuid& job, Term term, const Bootstrap& there) {
  FrameHeader header;
  header.job = job;
  header.term = term;
  return encode_frame({header, encode_payload(there)});
}

Duration pause_before_retry(std::uint32_t tries) {
  return std::min(kFirstRetry * (std::int64_t{1} << std::min<std::uint32_t>(tries, 8)), kLongestRetry);
}

}  // namespace monarch
