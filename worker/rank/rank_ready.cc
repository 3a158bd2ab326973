#include "worker/rank/rank_ready.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "transport/base/launcher_variables.h"
#include "transport/base/log.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/unix_address.h"

namespace monarch {

void say_ready() {
  const char* const path = ::getenv(kNotifyVariable.data());
  if (path == nullptr) return;
  const auto address = unix_address(path);
  if (!address) return log_warn("READY could not be said: ", address.error().message);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kReady = "READY=1";
  const auto* const to = reinterpret_cast<const sockaddr*>(&*address);
  ssize_t sent = -1;
  do {
    sent = ::sendto(socket.get(), kReady.data(), kReady.size(), MSG_NOSIGNAL, to, sizeof *address);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) log_warn("READY could not be said: ", system_word(errno));
}

}  // namespace monarch
