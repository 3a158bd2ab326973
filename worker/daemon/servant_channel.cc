#include "worker/daemon/servant_channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"
#include "transport/process/processor_times.h"
#include "transport/wire/sealed_memory.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch::daemon {
namespace {

constexpr Duration kConnectAgain = Duration::milliseconds(20);
constexpr Duration kFirstPause = Duration::milliseconds(100);
constexpr Duration kLongestPause = Duration::seconds(5);
constexpr Duration kGoodRun = Duration::seconds(30);  // after one of this length the first pause counts again
constexpr Duration kAskPeriod = Duration::milliseconds(300);
constexpr Duration kToldAfter = Duration::seconds(10);  // without a connection

}  // namespace

ServantChannel::~ServantChannel() {
  loop_.cancel(spawn_timer_);
  loop_.cancel(connect_timer_);
  loop_.cancel(ask_timer_);
}

void ServantChannel::begin(bool runs) {
  started_ = loop_.now();
  if (!runs) return spawn();
  runs_ = true;
  connect();
}

// Standard input, output and error.
Result<std::vector<UniqueFd>> ServantChannel::descriptors(const Frame& setup) const {
  std::vector<UniqueFd> descriptors;
  const std::string name = text("monarch-", options_.name, "-setup");
  MONARCH_ASSIGN(UniqueFd sealed, make_sealed_memory(name.c_str(), setup.payload));
  descriptors.push_back(std::move(sealed));
  descriptors.emplace_back(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  descriptors.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  for (const UniqueFd& descriptor : descriptors) {
    if (!descriptor.valid()) return errno_error(text("the descriptors of a ", options_.name), errno);
  }
  return descriptors;
}

void ServantChannel::spawn() {
  if (leaving_ || runs_) return;
  // The keeper takes no generation twice, and a daemon does not know what the one before it has named.
  const Generation generation{Term(1), static_cast<std::uint64_t>(loop_.now().since_boot().count_nanoseconds())};
  auto opened = descriptors(options_.setup(generation.counter));
  if (!opened.ok()) {
    log_warn("the ", options_.name, " cannot be started: ", opened.error().message);
    return spawn_later();
  }
  KeeperSpawn order;
  order.program = {"monarch-worker",           options_.name,     std::string(kJobArgument), options_.job.to_text(),
                   std::string(kHostArgument), options_.host_name};
  order.executable = "/proc/self/exe";
  order.workdir = "/";
  order.memory_patience = options_.memory_patience;
  runs_ = true;
  started_ = loop_.now();
  generation_ = generation;
  orders_.spawn({options_.process, generation}, order, std::move(*opened));
  connect_later();
}

void ServantChannel::spawn_later() {
  const bool good = loop_.now() >= started_ + kGoodRun;
  pause_ = good || pause_ == Duration::zero() ? kFirstPause : std::min(pause_ * 2, kLongestPause);
  loop_.cancel(spawn_timer_);
  spawn_timer_ = loop_.at(loop_.now() + pause_, [this] { spawn(); });
}

void ServantChannel::on_process(const RankReport& report) {
  if (report.phase != RankPhase::kEnded) {
    if (!generation_) generation_ = report.process.generation;  // that of an earlier daemon
    return;
  }
  orders_.forget(report.process);
  if (generation_ != report.process.generation) return;  // one before it, told of again
  if (!std::exchange(runs_, false) || leaving_) return;
  const std::string how = std::exchange(deaf_, false)
                              ? text("it had not answered for ", to_text(options_.answers_within), ", and was killed")
                              : describe_end(report.end);
  log_warn("the ", options_.name, " has ended (", how, "): ", options_.when_it_ends, "; another one is started");
  handlers_.on_ended(how);
  closed();
  spawn_later();
}

void ServantChannel::leave() {
  leaving_ = true;
  loop_.cancel(spawn_timer_);
  loop_.cancel(connect_timer_);
  loop_.cancel(ask_timer_);
}

void ServantChannel::connect() {
  if (channel_ || leaving_ || !runs_) return;
  auto socket = connect_seqpacket(options_.door);
  if (!socket.ok()) {
    if (loop_.now() >= started_ + kToldAfter && !std::exchange(told_, true)) {
      log_warn("the ", options_.name, " cannot be reached: ", socket.error().message);
    }
    return connect_later();
  }
  ChannelHandlers handlers;
  handlers.on_frame = [this](const Frame& frame, const std::vector<UniqueFd>& /*descriptors*/) {
    silence_.heard(loop_.now(), waited());
    if (is_a<KeeperPong>(frame.header)) return;
    const Status taken = handlers_.on_frame(frame);
    if (taken.ok()) return;
    log_warn("the ", options_.name, " said something that means nothing here: ", taken.error().message);
  };
  handlers.on_closed = [this](const Error&) {
    closed();
    connect_later();
  };
  const auto peer = peer_credentials(socket->get());
  pid_ = peer.ok() ? peer->pid : 0;
  auto channel = SeqpacketChannel::create(loop_, std::move(*socket), std::move(handlers));
  if (!channel.ok()) return connect_later();
  channel_ = std::move(*channel);
  told_ = false;
  send(options_.setup(0));
  handlers_.on_connected();
  watch();
}

void ServantChannel::watch() {
  if (options_.answers_within == Duration::zero() || leaving_) return;
  silence_.heard(loop_.now(), waited());
  ask_at_ = loop_.now();
  ask();
}

// Its main thread's: that is the one that answers.
Duration ServantChannel::waited() const {
  const auto times = pid_ > 0 ? processor_times(pid_) : std::nullopt;
  return times ? times->waited : Duration::zero();
}

void ServantChannel::ask() {
  loop_.cancel(ask_timer_);
  if (!channel_ || deaf_) return;
  const Duration late = loop_.now() - ask_at_;
  if (late > kAskPeriod) silence_.did_not_look(late, loop_.now());  // what was answered meanwhile is read first
  if (generation_ && silence_.is_too_long(loop_.now(), waited())) {
    deaf_ = true;
    return orders_.kill({options_.process, *generation_});  // its end is told by the keeper
  }
  send(KeeperPing{++asked_});
  ask_at_ = loop_.now() + kAskPeriod;
  ask_timer_ = loop_.at(ask_at_, [this] { ask(); });
}

void ServantChannel::connect_later() {
  loop_.cancel(connect_timer_);
  connect_timer_ = loop_.at(loop_.now() + kConnectAgain, [this] { connect(); });
}

void ServantChannel::closed() {
  if (!std::exchange(channel_, nullptr)) return;
  handlers_.on_closed();
}

void ServantChannel::send(const Frame& frame) {
  if (!channel_) return;
  const Status sent = channel_->send(frame);
  if (!sent.ok()) log_warn("the ", options_.name, " does not take a message: ", sent.error().message);
}

}  // namespace monarch::daemon
