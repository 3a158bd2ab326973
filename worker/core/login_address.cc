#include "worker/core/login_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <sstream>

namespace monarch {

namespace {

constexpr char kLoopbackEndpoint[] = "tcp://127.";

bool reaches_others(const std::string& address) {
  in_addr four{};
  constexpr std::uint32_t kLoopbackNet = 127;
  if (::inet_pton(AF_INET, address.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24U != kLoopbackNet;
  in6_addr six{};
  return ::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &six) == 1 && !IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace

// "CLIENT PORT SERVER PORT"; behind a proxy of sshd's the addresses are UNKNOWN.
std::string login_address(const std::string& connection) {
  std::istringstream words(connection);
  std::array<std::string, 3> word;
  for (std::string& each : word) words >> each;
  return reaches_others(word[2]) ? word[2] : "";
}

void settle_address(Bootstrap& bootstrap, const Environment& environment) {
  if (!bootstrap.control_endpoint.starts_with(kLoopbackEndpoint)) return;
  const auto connection = environment.find("SSH_CONNECTION");
  const std::string own = connection == environment.end() ? "" : login_address(connection->second);
  if (!own.empty()) bootstrap.host_address = own;
}

}  // namespace monarch
