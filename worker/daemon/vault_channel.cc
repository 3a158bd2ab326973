#include "worker/daemon/vault_channel.h"

#include <utility>

#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "worker/core/host_places.h"

namespace monarch::daemon {
namespace {

ServantOptions options_of(const VaultSetup& setup) {
  return {.name = std::string(kVaultArgument),
          .process = kVaultProcess,
          .host_name = setup.host_name,
          .door = text(setup.directory, '/', kVaultDaemonDoor),
          .setup = [setup](std::uint64_t /*start*/) { return frame_of(setup, {.job = setup.job}); },
          .job = setup.job,
          .memory_patience = vault_memory_patience(setup.memory),
          .when_it_ends = "what it held is lost on this host"};
}

}  // namespace

VaultChannel::VaultChannel(EventLoop& loop, const VaultSetup& setup, ServantOrders orders,
                           std::function<void()> on_report)
    : on_report_(std::move(on_report)),
      servant_(loop, options_of(setup), std::move(orders),
               {.on_connected =
                    [this] {
                      if (table_) servant_.send(*table_);
                    },
                .on_closed =
                    [this] {
                      if (std::exchange(report_, std::nullopt)) on_report_();
                    },
                .on_frame =
                    [this](const Frame& frame) {
                      return route(frame.header, frame.payload, when<VaultReport>([this](const VaultReport& report) {
                                     report_ = report;
                                     on_report_();
                                   }));
                    }}) {}

void VaultChannel::set_table(VaultTable table) {
  table_ = std::move(table);
  servant_.send(*table_);
}

}  // namespace monarch::daemon
