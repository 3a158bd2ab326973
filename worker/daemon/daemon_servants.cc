// What a daemon has to do with its host's vault and post.

#include <csignal>
#include <utility>
#include <vector>

#include "worker/daemon/daemon.h"

namespace monarch::daemon {

void Daemon::make_vault_channel() {
  const Bootstrap& bootstrap = setup_.stash.bootstrap;
  const VaultSetup vault{.job = setup_.stash.job,
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
  const auto on_report = [this] {
    // Where it serves is what others wait for.
    beat_at_once_ = beat_at_once_ || !vault_->report() || vault_->report()->port != vault_port_;
    vault_port_ = vault_->report() ? vault_->report()->port : 0;
    beat_later();
  };
  vault_ = std::make_unique<VaultChannel>(*loop_, vault, servant_orders(), on_report);
}

ServantOrders Daemon::servant_orders() {
  return {
      .spawn = [this](const Incarnation& key, const KeeperSpawn& order,
                      std::vector<UniqueFd> fds) { keeper_->spawn(core_.promised(), key, order, std::move(fds)); },
      .forget = [this](const Incarnation& key) { keeper_->tell(core_.promised(), KeeperForget{{key}}); },
      .kill =
          [this](const Incarnation& key) {
            keeper_->tell(
                core_.promised(),
                Stop{.ranks = {key.rank}, .generation = key.generation, .signal = SIGKILL, .grace = Duration::zero()});
          }};
}

void Daemon::make_post_channel() {
  const Bootstrap& bootstrap = setup_.stash.bootstrap;
  const PostSetup post{.job = setup_.stash.job,
                       .host_name = bootstrap.host_name,
                       .host = HostId(bootstrap.host),
                       .start = {.worker = bootstrap.worker, .number = 0},
                       .address = bootstrap.host_address,
                       .public_key = setup_.stash.public_key,
                       .secret_key = setup_.stash.secret_key,
                       .directory = bootstrap.socket_directory,
                       .keeper_pid = hello_.keeper_pid,
                       .first_port = bootstrap.first_port,
                       .last_port = bootstrap.last_port,
                       .one_machine = bootstrap.one_machine};
  const auto on_report = [this] {
    // Where it serves, that it goes by a newer roster, and what somebody wishes and waits for.
    const auto& report = post_->report();
    const bool port_changed = !report || report->port != post_port_;
    post_port_ = report ? report->port : 0;
    beat_at_once_ = beat_at_once_ || port_changed || (report && !report->wishes.empty());
    beat_later();
  };
  post_ = std::make_unique<PostChannel>(*loop_, post, servant_orders(), on_report);
}

void Daemon::perform(TellServant&& action) {
  if (auto* table = std::get_if<VaultTable>(&action.message); table != nullptr && vault_) {
    vault_->set_table(std::move(*table));
  }
  if (auto* message = std::get_if<ForPost>(&action.message); message != nullptr && post_) {
    post_->pass_on(message->type, std::move(message->payload));
  }
}

}  // namespace monarch::daemon
