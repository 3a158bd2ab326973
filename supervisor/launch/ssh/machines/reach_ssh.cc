#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "supervisor/launch/reach/carried_talk.h"
#include "supervisor/launch/ssh/machines/reach_by_ssh.h"
#include "supervisor/launch/ssh/ssh_program.h"
#include "supervisor/launch/ssh/ssh_routes.h"
#include "transport/base/text.h"
#include "transport/loop/scope.h"
#include "transport/wire/check_stream.h"

namespace monarch {

namespace {

// Over a session of its own. None of what SshProgram tells may end it, so that all of it is passed on in a later call.
class SshCarrier final : public CheckCarrier {
 public:
  SshCarrier(EventLoop& loop, CarrierHandlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  ~SshCarrier() override { close(); }

  Status open(SshProgramOptions options) {
    MONARCH_ASSIGN(program_,
                   SshProgram::start(loop_, std::move(options),
                                     {.on_ready = [this](SshProgramReady ready) { on_ready(std::move(ready)); },
                                      .on_ended = [this](const SshProgramEnd& end) { on_ended(end); },
                                      .on_failed = [this](const LaunchFailure& why) { fail_soon(why); }}));
    return {};
  }
  void say(std::string bytes) override {
    unsaid_ += bytes;
    write();
  }

 private:
  void on_ready(SshProgramReady ready) {
    stream_ = std::move(ready.stream);
    auto watch = loop_.watch(stream_.get(), Interest::kRead, [this](Readiness now) {
      if (now.writable) write();
      if (now.readable || now.hangup) tell(read());
    });
    if (!watch.ok()) return fail_soon(failure(watch.error().message, ""));
    watch_ = *watch;
    soon([this] { handlers_.on_ready(); });
  }
  // What it said before that comes first.
  void on_ended(const SshProgramEnd& end) {
    const std::string status = end.exit_status ? text(" with status ", *end.exit_status) : std::string();
    const std::string how = end.why.empty() ? text("it ended", status) : end.why;
    soon([this, why = failure(how, end.words)] {
      const Scope::Watch here = scope_.watch();
      tell(read());
      if (here.gone()) return;
      const auto told = handlers_.on_failed;
      told(why);
    });
  }
  static LaunchFailure failure(const std::string& how, const std::string& words) {
    return {.kind = LaunchFailureKind::kClosed,
            .phase = "check",
            .elapsed = {},
            .message = text("monarch-worker check: ", how),
            .words = words,
            .again = {}};
  }
  void soon(std::function<void()> call) {
    loop_.defer(scope_.guard([call = std::move(call)] { call(); }));
  }
  void fail_soon(LaunchFailure why) {
    soon([this, why = std::move(why)] {
      const auto told = handlers_.on_failed;
      told(why);
    });
  }
  void tell(const std::string& bytes) {
    const auto told = handlers_.on_heard;
    if (!bytes.empty()) told(bytes);
  }
  std::string read() {
    std::string bytes;
    while (stream_.valid() && bytes.size() < kCheckBytes) {
      std::array<char, 64U << 10U> piece{};
      const ssize_t got = ::recv(stream_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (got > 0) {
        bytes.append(piece.data(), static_cast<std::size_t>(got));
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got == 0 || errno != EAGAIN) close();  // how it ended is told
      break;
    }
    return bytes;
  }
  void write() {
    while (stream_.valid() && !unsaid_.empty()) {
      const ssize_t wrote = ::send(stream_.get(), unsaid_.data(), unsaid_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno != EAGAIN) return;  // its end is told
      if (wrote < 0) break;
      unsaid_.erase(0, static_cast<std::size_t>(wrote));
    }
    if (watch_ != 0) loop_.change(watch_, unsaid_.empty() ? Interest::kRead : Interest::kReadWrite);
  }
  void close() {
    if (watch_ != 0) loop_.forget(std::exchange(watch_, 0));
    stream_.reset();
  }

  EventLoop& loop_;
  CarrierHandlers handlers_;
  UniqueFd stream_;
  WatchId watch_ = 0;
  std::string unsaid_;
  Scope scope_;
  std::unique_ptr<SshProgram> program_;  // last: its threads end first
};

class SshReach final : public HostReach {
 public:
  SshReach(EventLoop& loop, SshAccess access, std::uint64_t seed)
      : loop_(loop), access_(std::move(access)), seed_(seed) {}

  std::unique_ptr<HostTalk> open(HostId host, HostTalk::OnLost on_lost) override {
    const auto carry = [&](CarrierHandlers handlers) -> Result<std::unique_ptr<CheckCarrier>> {
      auto carrier = std::make_unique<SshCarrier>(loop_, std::move(handlers));
      MONARCH_TRY(carrier->open({.route = access_.hosts[host.value()].route,
                                 .bundle = access_.image,
                                 .check = access_.order(RemotePurpose::kCheck),
                                 .pool = {.attempts = 1, .seed = seed_++}}));
      return std::unique_ptr<CheckCarrier>(std::move(carrier));
    };
    return std::make_unique<CarriedTalk>(loop_, carry, std::move(on_lost));
  }
  bool has_threads() const override { return true; }

 private:
  EventLoop& loop_;
  SshAccess access_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<HostReach> reach_by_ssh(EventLoop& loop, SshAccess access, std::uint64_t seed) {
  return std::make_unique<SshReach>(loop, std::move(access), seed);
}

Result<std::unique_ptr<HostReach>> reach_ssh(const ReachSurroundings& around) {
  SshUser user = SshUser::of_this_process();
  user.accept_new_host_keys = around.accept_new_host_keys;
  MONARCH_ASSIGN(SshAccess access, ssh_access(around.spec, user, around.worker_path));
  return reach_by_ssh(around.loop, std::move(access), around.seed);
}

}  // namespace monarch
