#include "worker/vault/vault_main.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/vault.h"
#include "transport/process/hidden_memory.h"
#include "transport/wire/codec.h"
#include "transport/wire/sealed_memory.h"
#include "worker/vault/vault.h"

namespace monarch {
namespace {

constexpr int kMapFromBytes = 128 << 10;  // a piece goes back to the system once it is sent

Result<VaultSetup> read_setup() {
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) != 0) return errno_error("fstat of the setup", errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > limits::kControlPayloadBytes) return Error{ErrorCode::kInvalid, text("a setup of ", size, " bytes")};
  MONARCH_ASSIGN(const std::string bytes, read_sealed_memory(STDIN_FILENO, size));
  return decode_payload<VaultSetup>(bytes);
}

// WARNING: the parent of prctl(2) is the thread that forked, and a keeper has one alone. One that ended before this is
// seen by the new parent.
Status die_with(pid_t keeper) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("PR_SET_PDEATHSIG", errno);
  if (::getppid() != keeper) return Error{ErrorCode::kGone, text("its keeper, process ", keeper, ", is gone")};
  return {};
}

// Each checkpoint is a descriptor here, and each rank that asks.
void raise_descriptor_limit() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &descriptors);  // up to the hard limit it does not fail
}

Status serve() {
  // Before any thread: they inherit the mask.
  MONARCH_ASSIGN(auto signals, SignalFd::create({SIGTERM}));
  MONARCH_ASSIGN(VaultSetup setup, read_setup());
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid() || ::dup2(null.get(), STDIN_FILENO) < 0) return errno_error("closing the setup", errno);
  MONARCH_TRY(die_with(setup.keeper_pid));
  log_set_name(text("vault ", setup.host_name));
  MONARCH_ASSIGN(auto vault, vault::Vault::start(std::move(setup), *signals));
  vault->run();
  return {};
}

}  // namespace

int vault_main() {
  refuse_core_dumps();
  hide_memory();
  raise_descriptor_limit();
  (void)::mallopt(M_ARENA_MAX, 1);
  (void)::mallopt(M_MMAP_THRESHOLD, kMapFromBytes);
  log_start({.name = "vault"});
  const Status served = serve();
  if (served.ok()) return 0;
  log_error("the vault cannot serve: ", served.error().message);
  return kExitInternal;
}

}  // namespace monarch
