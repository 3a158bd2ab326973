// What a daemon has to do with its host's vault.

#include <utility>
#include <vector>

#include "worker/daemon/daemon.h"

namespace monarch::daemon {

void Daemon::make_vault_channel() {
  const Bootstrap& bootstrap = setup_.stash.bootstrap;
  VaultSetup vault{.job = setup_.stash.job,
                   .host_name = bootstrap.host_name,
                   .host = HostId(bootstrap.host),
                   .address = bootstrap.host_address,
                   .public_key = setup_.stash.public_key,
                   .secret_key = setup_.stash.secret_key,
                   .memory = bootstrap.checkpoint_memory,
                   .directory = bootstrap.socket_directory,
                   .keeper_pid = hello_.keeper_pid,
                   .first_port = bootstrap.first_port,
                   .last_port = bootstrap.last_port};
  VaultChannel::Handlers handlers{
      .spawn = [this](const Incarnation& key, const KeeperSpawn& order,
                      std::vector<UniqueFd> fds) { keeper_->spawn(core_.promised(), key, order, std::move(fds)); },
      .forget = [this](const Incarnation& key) { keeper_->tell(core_.promised(), KeeperForget{{key}}); },
      .on_report =
          [this] {
            // Where it serves is what others wait for.
            beat_at_once_ = beat_at_once_ || !vault_->report() || vault_->report()->port != vault_port_;
            vault_port_ = vault_->report() ? vault_->report()->port : 0;
            beat_later();
          }};
  vault_ = std::make_unique<VaultChannel>(*loop_, std::move(vault), std::move(handlers));
}

void Daemon::perform(TellVault&& action) {
  if (vault_) vault_->set_table(std::move(action.table));
}

}  // namespace monarch::daemon
