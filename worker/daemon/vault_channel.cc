#include "worker/daemon/vault_channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/vault.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/sealed_memory.h"
#include "transport/wire/seqpacket_socket.h"
#include "worker/core/host_places.h"

namespace monarch::daemon {
namespace {

constexpr Duration kConnectAgain = Duration::milliseconds(20);
constexpr Duration kFirstPause = Duration::milliseconds(100);
constexpr Duration kLongestPause = Duration::seconds(5);
constexpr Duration kGoodRun = Duration::seconds(30);    // after one of this length the first pause counts again
constexpr Duration kToldAfter = Duration::seconds(10);  // without a connection

// Standard input, output and error of the vault.
Result<std::vector<UniqueFd>> descriptors_for(const VaultSetup& setup) {
  std::vector<UniqueFd> descriptors;
  MONARCH_ASSIGN(UniqueFd sealed, make_sealed_memory("monarch-vault-setup", encode_payload(setup)));
  descriptors.push_back(std::move(sealed));
  descriptors.emplace_back(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  descriptors.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  for (const UniqueFd& descriptor : descriptors) {
    if (!descriptor.valid()) return errno_error("the descriptors of a vault", errno);
  }
  return descriptors;
}

}  // namespace

VaultChannel::~VaultChannel() {
  loop_.cancel(spawn_timer_);
  loop_.cancel(connect_timer_);
}

void VaultChannel::begin(bool runs) {
  started_ = loop_.now();
  if (!runs) return spawn();
  runs_ = true;
  connect();
}

void VaultChannel::spawn() {
  if (leaving_ || runs_) return;
  auto descriptors = descriptors_for(setup_);
  if (!descriptors.ok()) {
    log_warn("the vault cannot be started: ", descriptors.error().message);
    return spawn_later();
  }
  KeeperSpawn order;
  order.program = {"monarch-worker",     std::string(kVaultArgument), std::string(kJobArgument),
                   setup_.job.to_text(), std::string(kHostArgument),  setup_.host_name};
  order.executable = "/proc/self/exe";
  order.workdir = "/";
  order.memory_patience = vault_memory_patience(setup_.memory);
  runs_ = true;
  started_ = loop_.now();
  // The keeper takes no generation twice, and a daemon does not know what the one before it has named.
  const Generation generation{Term(1), static_cast<std::uint64_t>(loop_.now().since_boot().count_nanoseconds())};
  generation_ = generation;
  handlers_.spawn({kVaultProcess, generation}, order, std::move(*descriptors));
  connect_later();
}

void VaultChannel::spawn_later() {
  const bool good = loop_.now() >= started_ + kGoodRun;
  pause_ = good || pause_ == Duration::zero() ? kFirstPause : std::min(pause_ * 2, kLongestPause);
  loop_.cancel(spawn_timer_);
  spawn_timer_ = loop_.at(loop_.now() + pause_, [this] { spawn(); });
}

void VaultChannel::on_process(const RankReport& report) {
  if (report.phase != RankPhase::kEnded) {
    if (!generation_) generation_ = report.process.generation;  // that of an earlier daemon
    return;
  }
  handlers_.forget(report.process);
  if (generation_ != report.process.generation) return;  // one before it, told of again
  if (!std::exchange(runs_, false) || leaving_) return;
  log_warn("the vault has ended (", report.end.kind == EndKind::kSignaled ? "signal " : "status ", report.end.value,
           report.end.detail.empty() ? "" : ": ", report.end.detail,
           "): what it held is lost on this host; another one is started");
  on_closed();
  spawn_later();
}

void VaultChannel::set_table(VaultTable table) {
  table_ = std::move(table);
  if (channel_) send(*table_);
}

void VaultChannel::leave() {
  leaving_ = true;
  loop_.cancel(spawn_timer_);
  loop_.cancel(connect_timer_);
}

void VaultChannel::connect() {
  if (channel_ || leaving_ || !runs_) return;
  auto socket = connect_seqpacket(text(setup_.directory, '/', kVaultDaemonDoor));
  if (!socket.ok()) {
    if (loop_.now() >= started_ + kToldAfter && !std::exchange(told_, true)) {
      log_warn("the vault cannot be reached: ", socket.error().message);
    }
    return connect_later();
  }
  ChannelHandlers handlers;
  handlers.on_frame = [this](const Frame& frame, const std::vector<UniqueFd>& /*descriptors*/) { on_frame(frame); };
  handlers.on_closed = [this](const Error&) {
    on_closed();
    connect_later();
  };
  auto channel = SeqpacketChannel::create(loop_, std::move(*socket), std::move(handlers));
  if (!channel.ok()) return connect_later();
  channel_ = std::move(*channel);
  told_ = false;
  send(setup_);
  if (table_) send(*table_);
}

void VaultChannel::connect_later() {
  loop_.cancel(connect_timer_);
  connect_timer_ = loop_.at(loop_.now() + kConnectAgain, [this] { connect(); });
}

void VaultChannel::on_frame(const Frame& frame) {
  const Status taken = route(frame.header, frame.payload, when<VaultReport>([&](const VaultReport& report) {
                               report_ = report;
                               handlers_.on_report();
                             }));
  if (!taken.ok()) log_warn("the vault said something that means nothing here: ", taken.error().message);
}

void VaultChannel::on_closed() {
  channel_.reset();
  if (!report_) return;
  report_.reset();
  handlers_.on_report();
}

template <class Message>
void VaultChannel::send(const Message& message) {
  const Status sent = channel_->send(frame_of(message, {.job = setup_.job}));
  if (!sent.ok()) log_warn("the vault does not take a message: ", sent.error().message);
}

}  // namespace monarch::daemon
