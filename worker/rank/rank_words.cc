#include "worker/rank/rank_words.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "transport/base/launcher_variables.h"
#include "transport/base/result.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/unix_address.h"

namespace monarch {

void say_ready() {
  const char* const path = ::getenv(kNotifyVariable.data());
  if (path == nullptr) return;
  const auto address = unix_address(path);
  if (!address) return say(text("READY could not be said: ", address.error().message));
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr std::string_view kReady = "READY=1";
  const auto* const to = reinterpret_cast<const sockaddr*>(&*address);
  ssize_t sent = -1;
  do {
    sent = ::sendto(socket.get(), kReady.data(), kReady.size(), MSG_NOSIGNAL, to, sizeof *address);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) say(text("READY could not be said: ", system_word(errno)));
}

void say(const std::string& words) {
  const std::string line = text("monarch-rank: ", words, "\n");
  (void)!::write(STDERR_FILENO, line.data(), line.size());  // a closed end wants none
}

}  // namespace monarch
