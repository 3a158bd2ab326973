#include "supervisor/launch/ssh/ssh_way_back.h"
#include "supervisor/launch/talk/way_back.h"

#include <utility>

#include "transport/base/loopback.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string port_of_loopback(std::uint16_t port) { return text("tcp://", kLoopbackAddress, ":", port); }

LaunchFailure no_tunnel(const SshRoute& route, const SshWayBack& way, const Error& why) {
  LaunchFailure failure{.kind = LaunchFailureKind::kOther,
                        .phase = "tunnel",
                        .message = text(where_text(route.back()), ": ", why.message),
                        .again = way_back_test(route, way, "")};
  if (why.code == ErrorCode::kTimeout) failure.kind = LaunchFailureKind::kTimeout;
  if (why.code == ErrorCode::kGone) failure.kind = LaunchFailureKind::kClosed;
  if (why.code == ErrorCode::kUnsupported) {
    failure.kind = LaunchFailureKind::kForwarding;
    failure.message +=
        "; `control: {via: ssh}` needs `AllowTcpForwarding yes` or `remote` in its sshd_config, no PermitListen that "
        "leaves "
        "out 127.0.0.1, and a key without `restrict` or `no-port-forwarding` in authorized_keys";
  }
  return failure;
}

}  // namespace

std::string way_back_test(const SshRoute& route, const SshWayBack& way, const std::string& endpoint) {
  if (!way.tunnel.empty()) {
    const std::string ssh = "ssh ";
    const std::string command = reproducer(route, "echo forwarded");
    return text(ssh, "-o ExitOnForwardFailure=yes -R ", kLoopbackAddress, ":0:", kLoopbackAddress, ":", way.tunnel[0],
                " ", command.substr(ssh.size()));
  }
  const std::size_t address = endpoint.find("//") + 2;
  const std::size_t colon = endpoint.rfind(':');
  std::string host = endpoint.substr(address, colon - address);
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  return reproducer(
      route, text("timeout 5 bash -c \"</dev/tcp/", host, "/", endpoint.substr(colon + 1), "\" && echo reached"));
}

std::variant<std::shared_ptr<SshTunnel>, LaunchFailure> point_back(SshSession& session, const SshRoute& route,
                                                                   const SshWayBack& way, Bootstrap& there,
                                                                   const Patience& patience) {
  if (!way.tunnel.empty()) {
    auto tunnel = SshTunnel::open(session, {.wanted = {0, 0}, .ports = way.tunnel, .silence = way.silence}, patience);
    if (!tunnel.ok()) return no_tunnel(route, way, tunnel.error());
    there.control_endpoint = port_of_loopback((*tunnel)->there()[0]);
    there.bulk_endpoint = port_of_loopback((*tunnel)->there()[1]);
    // Its ranks are not reached where the tunnel begins. Behind a jump host it knows better than we do.
    // What is seen of it through a link of ours alone (fe80::1%eth0) is no address elsewhere.
    auto seen = session.remote_address();
    if (seen.ok() && seen->find('%') == std::string::npos) there.host_address = std::move(*seen);
    return std::shared_ptr<SshTunnel>(std::move(*tunnel));
  }
  std::string address = way.address;
  if (address.empty()) {
    auto reached = session.local_address();
    if (!reached.ok()) {
      return LaunchFailure{.phase = "authenticate",
                           .message = text(reached.error().message,
                                           ": say it in control.address, or take the way of the session by `control: "
                                           "{via: ssh}`")};
    }
    address = *reached;
  }
  if (address.find('%') != std::string::npos) {
    return LaunchFailure{.kind = LaunchFailureKind::kCallBack,
                         .phase = "authenticate",
                         .message = text("it is reached over a link-local address, from ", address,
                                         ", which means nothing on the host: say in control.address by which it "
                                         "reaches this machine, or take the way of the session by `control: {via: "
                                         "ssh}`")};
  }
  there.control_endpoint = endpoint_at(there.control_endpoint, address);
  there.bulk_endpoint = endpoint_at(there.bulk_endpoint, address);
  return std::shared_ptr<SshTunnel>();
}

}  // namespace monarch
