#include "supervisor/client/endpoint.h"

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

std::string write_endpoint(const Endpoint& endpoint) {
  return to_json(Json::object({{"v", 1},
                               {"host", endpoint.host},
                               {"pid", endpoint.pid},
                               {"term", endpoint.term.value()},
                               {"socket", endpoint.socket}})) +
         "\n";
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
  return endpoint;
}

}  // namespace monarch
