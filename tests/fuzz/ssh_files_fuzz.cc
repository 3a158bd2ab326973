// Files of a user's that decide about SSH: the bytes as a configuration, which may say nothing but the names, files and
// jump hosts that stand in it, and as known_hosts, where a key is only ever one that can be written and read again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "supervisor/launch/ssh/session/known_hosts.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "supervisor/launch/ssh/ssh_config.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto config = parse_ssh_config(bytes, "config"); config.ok()) {
    for (const SshConfigLine& line : config->lines) MONARCH_ASSERT(!line.keyword.empty() || !line.arguments.empty());
    const auto answer = look_up(*config, "gpu7", "/home/a");
    if (!answer.ok()) MONARCH_ASSERT(answer.error().message.starts_with("config:"));
    for (const char* host : {"", "*", "[gpu7]", "!gpu7"}) (void)look_up(*config, host, "");
  }
  if (!load_libssh().ok()) return 0;
  for (const KnownKey& known : parse_known_hosts(bytes, "known", "gpu7")) {
    const std::string line = text("gpu7 ", known.key.type, " ", known.key.base64, "\n");
    const auto again = parse_known_hosts(line, "again", "gpu7");
    MONARCH_ASSERT(again.size() == 1 && again[0].key.fingerprint == known.key.fingerprint &&
                   again[0].as == KnownAs::kHost);
  }
  return 0;
}
