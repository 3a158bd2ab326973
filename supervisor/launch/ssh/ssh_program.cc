#include "supervisor/launch/ssh/ssh_program.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>
#include <variant>

#include "supervisor/launch/ssh/program_pump.h"
#include "supervisor/launch/ssh/remote_talk.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"

namespace monarch {

namespace {

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

RemoteOrder order_of(const SshProgramOptions& options) {
  if (options.check) return *options.check;
  return {.purpose = RemotePurpose::kProgram,
          .file = options.bundle->file,
          .machine = options.bundle->machine,
          .word = options.word,
          .lies_there = options.bundle->bytes.empty()};
}

Result<Pair> make_pair_of_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return errno_error("a pair of sockets", errno);
  }
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<std::unique_ptr<SshProgram>> SshProgram::start(EventLoop& loop, SshProgramOptions options,
                                                      SshProgramHandlers handlers) {
  MONARCH_ASSERT((options.bundle != nullptr || options.check) && handlers.on_ready && handlers.on_ended &&
                 handlers.on_failed);
  MONARCH_TRY(load_libssh());
  std::unique_ptr<SshProgram> program(new SshProgram(std::move(handlers)));
  MONARCH_ASSIGN(program->pool_, SshPool::create(loop, options.pool));
  SshProgram* self = program.get();
  const SshRoute route = options.route;
  (void)program->pool_->submit(
      {.route = route,
       .talk = [self, options = std::move(options)](SshSession& session,
                                                    int cancel) { return self->visit(session, cancel, options); },
       .on_failed = [self](LaunchFailure failure) { self->handlers_.on_failed(std::move(failure)); }});
  return program;
}

// In the session's thread; what it returns runs by the loop.
SshVisit SshProgram::visit(SshSession& session, int cancel, const SshProgramOptions& options) {
  const Instant began = boot_now();
  const auto failed = [this, &options, began](LaunchFailure failure) -> std::function<void()> {
    failure.elapsed = boot_now() - began;
    if (failure.again.empty()) failure.again = reproducer(options.route);
    return [this, failure = std::move(failure)] { handlers_.on_failed(failure); };
  };
  RemoteTalk talk(session, order_of(options), options.bundle.get(), {.cancel = cancel, .silence = options.silence});
  std::optional<RemoteAnswer> answer;
  while (!answer && !talk.conversation().talking()) answer = talk.step();
  if (answer) {
    if (auto* failure = std::get_if<LaunchFailure>(&*answer)) return failed(std::move(*failure));
  }
  auto* program = answer ? std::get_if<RemoteProgram>(&*answer) : nullptr;
  MONARCH_ASSERT(program != nullptr || options.check);
  auto pair = make_pair_of_sockets();
  if (!pair.ok()) return failed({.phase = "start", .message = pair.error().message});

  // Owners: the function that hands it on, and nobody after it.
  auto ready = std::make_shared<SshProgramReady>(
      SshProgramReady{.path = program == nullptr ? std::string() : std::move(program->path),
                      .stream = std::move(pair->ours),
                      .copied = talk.copy()});
  SshVisit visit([this, ready] { handlers_.on_ready(std::move(*ready)); });
  // Owners: the visit alone; a function has to be copyable.
  auto pump = std::make_shared<ProgramPump>(session.raw(), talk.take_channel(), std::move(pair->theirs),
                                            talk.conversation().take_heard(), talk.conversation().words());
  visit.stay = [this, pump, ask_after = options.ask_after,
                dead_after = options.dead_after](int cancelled) -> std::function<void()> {
    SshProgramEnd end = pump->carry({.cancel = cancelled, .ask_after = ask_after, .dead_after = dead_after});
    return [this, end = std::move(end)] { handlers_.on_ended(end); };
  };
  return visit;
}

}  // namespace monarch
