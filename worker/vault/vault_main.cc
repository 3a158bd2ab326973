#include "worker/vault/vault_main.h"

#include "transport/messages/vault.h"
#include "worker/servant/servant_main.h"
#include "worker/vault/vault.h"

namespace monarch {

// A piece goes back to the system once it is sent.
int vault_main() {
  return servant_main<VaultSetup>("vault", {}, [](VaultSetup setup, SignalFd& signals) -> Status {
    MONARCH_ASSIGN(auto vault, vault::Vault::start(std::move(setup), signals));
    vault->run();
    return {};
  });
}

}  // namespace monarch
