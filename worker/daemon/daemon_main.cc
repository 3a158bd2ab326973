#include "worker/daemon/daemon_main.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/process/hidden_memory.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_message.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/daemon_setup.h"
#include "worker/daemon/inventory.h"

namespace monarch {
namespace {

constexpr int kKeeperFd = 3;
constexpr Duration kHelloDeadline = Duration::seconds(10);
// One arena: threads that mostly sleep need no heap each. WARNING: once it is set, the threshold no longer grows by
// itself (mallopt(3)): pieces of output come from the heap, since a mapping for each costs more than its encryption.
constexpr int kArenas = 1;
constexpr int kMapFromBytes = 1 << 20;

struct FirstWord {
  KeeperHello hello;
  UniqueFd stash;
};

// Each rank has two pipes and two files here.
void raise_descriptor_limit() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &descriptors);  // up to the hard limit it does not fail
}

void prepare_process() {
  refuse_core_dumps();  // first: what it writes is root's once the memory is hidden
  hide_memory();
  raise_descriptor_limit();
  (void)::mallopt(M_ARENA_MAX, kArenas);
  (void)::mallopt(M_MMAP_THRESHOLD, kMapFromBytes);
  (void)::mallopt(M_TRIM_THRESHOLD, kMapFromBytes);
}

Result<FirstWord> hear_keeper(int fd) {
  const Instant deadline = boot_now() + kHelloDeadline;
  for (;;) {
    MONARCH_ASSIGN(auto received, receive_message(fd, limits::kSeqpacketPayloadBytes));
    if (received) {
      if (!is_a<KeeperHello>(received->frame.header)) {
        return Error{ErrorCode::kInvalid, text("the keeper began with type ", received->frame.header.type)};
      }
      MONARCH_ASSIGN(KeeperHello hello,
                     decode_payload<KeeperHello>(received->frame.payload, limits::kSeqpacketPayloadBytes));
      if (!hello.has_stash || received->descriptors.size() != 1) {
        return Error{ErrorCode::kInvalid, "the keeper's hello came without a stash"};
      }
      return FirstWord{std::move(hello), std::move(received->descriptors.front())};
    }
    pollfd keeper{fd, POLLIN, 0};
    if (::poll(&keeper, 1, EventLoop::wait_milliseconds(boot_now(), deadline)) == 0) {
      return Error{ErrorCode::kTimeout, text("the keeper said nothing for ", to_text(kHelloDeadline))};
    }
  }
}

void answer(const daemon::Setup& setup, const KeeperHello& hello) {
  BootstrapReply reply;
  reply.public_key = setup.stash.public_key;
  reply.keeper_pid = hello.keeper_pid;
  reply.boot_id = read_boot_id();
  reply.version = MONARCH_VERSION;
  reply.inventory = daemon::read_inventory();
  reply.host_address = setup.stash.bootstrap.host_address;
  reply.log_directory = setup.stash.bootstrap.log_directory;
  utsname machine{};
  if (::uname(&machine) == 0) reply.architecture = machine.machine;
  if (const Status told = daemon::answer_launcher(STDOUT_FILENO, setup.stash.job, reply); !told.ok()) {
    log_warn(told.error().message);  // without a launcher that listens the worker ends by its orphan_ttl
  }
}

Result<int> serve(const TreeRemover& remove_trees) {
  UniqueFd keeper(kKeeperFd);
  if (::fcntl(keeper.get(), F_SETFD, FD_CLOEXEC) != 0) return errno_error("the keeper's channel", errno);
  // Before any thread: they inherit the mask.
  MONARCH_ASSIGN(auto signals, SignalFd::create({SIGTERM}));
  MONARCH_ASSIGN(FirstWord first, hear_keeper(keeper.get()));
  BootstrapReply reply;
  auto setup = daemon::set_up(first.stash, reply.refusal);
  if (!setup.ok()) {
    reply.error = setup.error().message;
    if (first.hello.starts <= 1) (void)daemon::answer_launcher(STDOUT_FILENO, JobUuid{}, reply);  // the log has it too
    return setup.error();
  }
  log_set_name(text("daemon ", setup->stash.bootstrap.host_name));
  MONARCH_ASSIGN(auto daemon, daemon::Daemon::start(*setup, first.hello, std::move(keeper), *signals));
  // Only now: whoever hears the key may count on this daemon.
  if (setup->first_start) answer(*setup, first.hello);
  const int code = daemon->run();
  // Else its keeper does it.
  if (daemon->lost_keeper()) {
    const Status removed = remove_trees(setup->stash.bootstrap.state_directory);
    if (!removed.ok()) log_warn(removed.error().message);
  }
  return code;
}

}  // namespace

int daemon_main(const TreeRemover& remove_trees) {
  prepare_process();
  log_start({.name = "daemon"});
  const Result<int> code = serve(remove_trees);
  if (code.ok()) return *code;
  log_error("the daemon cannot serve: ", code.error().message);
  return kExitInternal;
}

}  // namespace monarch
