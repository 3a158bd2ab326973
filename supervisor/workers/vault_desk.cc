#include "supervisor/workers/vault_desk.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "transport/base/sha256.h"
#include "transport/messages/vault.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

// The first eight bytes of a digest in hexadecimal digits; never 0, which says that there is none.
std::uint64_t version_of(const std::string& digest) {
  constexpr std::size_t kDigits = 16;
  constexpr int kBase = 16;
  std::uint64_t version = 0;
  (void)std::from_chars(digest.data(), digest.data() + kDigits, version, kBase);  // they are digits
  return std::max<std::uint64_t>(version, 1);
}

}  // namespace

VaultDesk::VaultDesk(const JobCore& core, VaultDeskOptions options)
    : core_(core), options_(std::move(options)), ports_(core, options_.returned), vaults_(core.hosts().size()) {}

VaultView VaultDesk::view(const Look& look) const {
  return {.spec = core_.spec(),
          .state = core_.state(),
          .placement = core_.placement(),
          .pool = core_.hosts(),
          .ports = look.ports};
}

void VaultDesk::hear(HostId host, const VaultReport& report, Instant now) {
  if (!is_joined(core_.facts().host(host).phase)) return;
  const ServantPorts::Heard heard = ports_.hear(host, report.port, now);
  stale_ = stale_ || heard != ServantPorts::Heard::kSame;
  if (report.port == 0) return;
  first_port_ = first_port_ || heard == ServantPorts::Heard::kFirst;
  // A worker that was launched anew has a vault of its own.
  const std::uint64_t incarnation = core_.facts().host(host).incarnation;
  if (vaults_[host.value()].incarnation != incarnation) vaults_[host.value()] = Vault{.incarnation = incarnation};
  look_again(now);
  if (look_.number == 0 || !ports_.whole(now)) return;
  Vault& vault = look_at(host);
  if (report.table == vault.version) return;
  // It may still be on its way.
  if (vault.version == vault.sent && now - vault.sent_at < core_.spec().supervision.heartbeat) return;
  if (vault.paid_until > now + interval() * (kAtOnce - 1)) return;
  VaultTable table = vault_table_of(look_.common, (*look_.own)[host.value()], host);
  table.version = vault.version;
  if (!options_.send(host, table)) return;
  vault.sent = vault.version;
  vault.sent_at = now;
  vault.paid_until = std::max(vault.paid_until, now) + interval();
}

// For the first port of a host at once, which is as often as hosts are launched: others can send it nothing until they
// know it.
void VaultDesk::look_again(Instant now) {
  take_over();
  const bool due = first_port_ || looks_ == 0 || now - looked_at_ >= kFloor;
  if (next_ || !stale_ || !due) return;
  next_ = take_look();
  looked_at_ = now;
  stale_ = first_port_ = false;
  take_over();
}

void VaultDesk::take_over() {
  if (!next_ || !options_.is_durable(next_->ticket)) return;
  look_ = std::move(*next_);
  next_.reset();
}

VaultDesk::Look VaultDesk::take_look() {
  Look look{.number = ++looks_, .ticket = ticket_};
  for (std::size_t i = 0; i < vaults_.size(); ++i) {
    look.ports.push_back(ports_.port(HostId(static_cast<std::uint32_t>(i))));
  }
  look.common = common_vault_table(view(look));
  const std::string encoded = encode_payload(look.common);
  look.bytes = encoded.size();
  look.digest = sha256(encoded);
  std::vector<std::uint32_t> places = vault_places(view(look));
  if (looks_ == 1 || places != places_) {
    places_ = std::move(places);
    own_ = std::make_shared<const std::vector<std::vector<VaultGang>>>(own_vault_gangs(view(look)));
  }
  look.own = own_;
  return look;
}

// The version is of what all are told and of what this host alone is told: the same state gives the same one, also
// after our return.
VaultDesk::Vault& VaultDesk::look_at(HostId host) {
  Vault& vault = vaults_[host.value()];
  if (vault.look == look_.number) return vault;
  vault.look = look_.number;
  vault.version = version_of(sha256(look_.digest + encode_payload(VaultTable{.gangs = (*look_.own)[host.value()]})));
  return vault;
}

Duration VaultDesk::interval() const {
  const auto bytes = static_cast<std::int64_t>(look_.bytes * vaults_.size());
  const Duration at_rate = Duration::milliseconds(bytes * 1'000 / static_cast<std::int64_t>(kBytesPerSecond));
  return std::max(core_.spec().supervision.heartbeat, at_rate);
}

}  // namespace monarch
