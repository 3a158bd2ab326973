#include "supervisor/client/link/endpoint.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kAddresses = 64;  // more are not told

Json json_of(const ViewerDoorAddress& door) {
  Json addresses = Json::array();
  for (std::size_t i = 0; i < door.addresses.size() && i < kAddresses; ++i) addresses.append(door.addresses[i]);
  return Json::object({{"addresses", std::move(addresses)},
                       {"port", door.port},
                       {"server", door.server_key},
                       {"public", door.public_key},
                       {"secret", door.secret_key}});
}

Result<ViewerDoorAddress> door_of(const Json& json) {
  ViewerDoorAddress door;
  if (const Json* addresses = json.find("addresses"); addresses != nullptr) {
    for (const Json& address : addresses->items()) {
      if (auto words = address.as_string(); words && door.addresses.size() < kAddresses) {
        door.addresses.push_back(std::move(*words));
      }
    }
  }
  const std::uint64_t port = json.get_uint64("port").value_or(0);
  door.server_key = json.get_string("server").value_or("");
  door.public_key = json.get_string("public").value_or("");
  door.secret_key = json.get_string("secret").value_or("");
  if (port == 0 || port > UINT16_MAX || door.server_key.empty() || door.public_key.empty() || door.secret_key.empty()) {
    return Error{ErrorCode::kInvalid, text("reading ", kEndpointFile, ": what it says of viewers is not whole")};
  }
  door.port = static_cast<std::uint16_t>(port);
  return door;
}

}  // namespace

std::string write_endpoint(const Endpoint& endpoint) {
  Json json = Json::object({{"v", 1},
                            {"host", endpoint.host},
                            {"pid", endpoint.pid},
                            {"term", endpoint.term.value()},
                            {"socket", endpoint.socket}});
  if (endpoint.viewers) json.set("viewers", json_of(*endpoint.viewers));
  return to_json(json) + "\n";
}

Result<Endpoint> parse_endpoint(const std::string& json) {
  auto parsed = parse_json(json);
  if (!parsed.ok()) return Error{ErrorCode::kInvalid, text("reading ", kEndpointFile, ": ", parsed.error().message)};
  const std::optional<std::string> socket = parsed->get_string("socket");
  if (!socket || socket->empty())
    return Error{ErrorCode::kInvalid, text("reading ", kEndpointFile, ": it names no socket")};
  Endpoint endpoint;
  endpoint.host = parsed->get_string("host").value_or("");
  const std::int64_t pid = parsed->get_int64("pid").value_or(0);
  endpoint.pid = pid > 0 && pid <= INT32_MAX ? static_cast<std::int32_t>(pid) : 0;
  endpoint.term = Term(parsed->get_uint64("term").value_or(0));
  endpoint.socket = *socket;
  if (const Json* viewers = parsed->find("viewers"); viewers != nullptr) {
    MONARCH_ASSIGN(endpoint.viewers, door_of(*viewers));
  }
  return endpoint;
}

std::string name_of_this_machine() {
  std::array<char, 256> name{};
  // One that is cut equals no other.
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace monarch
