#include "supervisor/drill/injector.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <variant>

#include "supervisor/doctor/check_talk.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// In a session's thread. The host has more time than we wait: a talk whose end is lost is over there by itself.
class StrikeTalk {
 public:
  StrikeTalk(SshSession& session, RemoteOrder order, std::shared_ptr<const WorkerImage> image, Duration patience,
             int cancel)
      : image_(std::move(image)),
        patience_(patience),
        talk_(session, std::move(order), image_.get(), {.cancel = cancel, .silence = patience * 4}) {}

  Injected begin(const StrikeOrder& order, Duration lasts) {
    return ask({.life = lasts + patience_ * 2, .patience = patience_, .strike = order});
  }
  std::string end() {
    const Injected ended = ask({.life = patience_, .patience = patience_, .undo = true});
    if (ended.error.empty()) talk_.leave();
    return ended.error;
  }

 private:
  Injected ask(const CheckRequest& request) {
    const auto answer = talk_.ask(request);
    if (const auto* failure = std::get_if<LaunchFailure>(&answer)) {
      return {.error = printable(text(name_of(failure->kind), ": ", failure->message)), .struck = {}};
    }
    const auto& struck = std::get<doctor::TimedAnswer>(answer).answer.struck;
    if (!struck) return {.error = "the worker there knows no faults: it is older than this monarch", .struck = {}};
    return {.error = printable(struck->error), .struck = struck->struck};
  }

  std::shared_ptr<const WorkerImage> image_;
  Duration patience_;
  doctor::CheckTalk talk_;
};

// Until one of them is readable, or for so long.
void wait_for(int over, int cancel, Duration longest) {
  const Instant end = boot_now() + longest;
  for (;;) {
    const Duration left = end - boot_now();
    if (left <= Duration::zero()) return;
    std::array<pollfd, 2> either{{{over, POLLIN, 0}, {cancel, POLLIN, 0}}};
    const int found = ::poll(either.data(), either.size(), static_cast<int>(left.count_milliseconds()) + 1);
    if (found > 0 || (found < 0 && errno != EINTR)) return;
  }
}

}  // namespace

Result<std::unique_ptr<Injector>> Injector::create(EventLoop& loop, InjectorOptions options) {
  std::unique_ptr<Injector> made(new Injector(loop, std::move(options)));
  MONARCH_ASSIGN(made->pool_, SshPool::create(loop, {.attempts = 1, .seed = made->options_.seed}));
  return made;
}

Injector::~Injector() { pool_.reset(); }

Injector::Ticket Injector::strike(HostId host, StrikeOrder order, Duration lasts, OnInjected on_injected,
                                  OnUndone on_undone) {
  const Ticket ticket = next_++;
  Running& running = running_[ticket];
  running.over = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  running.on_injected = std::move(on_injected);
  running.on_undone = std::move(on_undone);
  const SshLauncherHost& where = options_.access.hosts[host.value()];
  RemoteOrder remote = options_.access.order(RemotePurpose::kCheck);
  // The thread's own: this object may be gone before it looks.
  const auto over = std::make_shared<const UniqueFd>(::dup(running.over.get()));
  auto talk = [this, ticket, order = std::move(order), lasts, remote = std::move(remote), image = options_.access.image,
               patience = options_.patience, over](SshSession& session, int cancel) mutable -> SshVisit {
    const auto there = std::make_shared<StrikeTalk>(session, std::move(remote), image, patience, cancel);
    Injected seen = there->begin(order, lasts);
    SshVisit visit([this, ticket, seen] { injected(ticket, seen); });
    if (!seen.error.empty()) return visit;
    visit.stay = [this, ticket, there, over, lasts](int stop) -> std::function<void()> {
      wait_for(over->get(), stop, lasts);
      return [this, ticket, error = there->end()] { undone(ticket, error); };
    };
    return visit;
  };
  (void)pool_->submit(
      {.route = where.route, .talk = std::move(talk), .on_failed = [this, ticket](LaunchFailure failure) {
         injected(ticket, {.error = printable(text(name_of(failure.kind), ": ", failure.message)), .struck = {}});
       }});
  return ticket;
}

void Injector::undo(Ticket ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  const std::uint64_t one = 1;
  (void)!::write(found->second.over.get(), &one, sizeof one);  // full: it was told before
}

void Injector::injected(Ticket ticket, const Injected& what) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  const OnInjected tell = std::move(found->second.on_injected);
  if (!what.error.empty()) running_.erase(found);
  tell(what);
}

void Injector::undone(Ticket ticket, const std::string& error) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  const OnUndone tell = std::move(found->second.on_undone);
  running_.erase(found);
  tell(error);
}

}  // namespace monarch::drill
