#include "worker/rank/rank_main.h"

#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/launcher_variables.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/door_thread.h"
#include "worker/rank/intake.h"
#include "worker/rank/named_actors.h"
#include "worker/rank/plugin.h"
#include "worker/rank/rank_host.h"
#include "worker/rank/rank_manifest.h"
#include "worker/rank/rank_process.h"
#include "worker/rank/rank_words.h"
#include "worker/rank/stack_watch.h"

namespace monarch {

namespace {

constexpr std::string_view kUsage = "usage: monarch-rank [--tree FOLDER]   (`monarch run` starts it)";

// For named actors, once the controller has returned: what they run may wait for ever.
constexpr Duration kNamedPatience = Duration::seconds(2);

int refuse(int code, const std::string& message) {
  say(message);
  return code;
}

// Empty: this process cannot tell where it was executed from.
std::string beside_this_program(std::string_view name) {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view own(path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return own.starts_with('/') ? text(own.substr(0, own.rfind('/')), '/', name) : std::string();
}

using Actors = std::map<std::string, std::unique_ptr<ActorThread>>;

PostHello serving_hello(const RankProcess& process, const Actors& actors) {
  PostHello hello;
  hello.version = kPostDoorVersion;
  hello.mesh = process.place.mesh;
  hello.rank = process.place.rank;
  hello.generation = process.place.generation;
  hello.serves = true;
  for (const auto& [name, actor] : actors) hello.actors.push_back(told_actor(name, actor->of()));
  return hello;
}

// What no call reaches is of no use, and in nobody's way once it has ended: supervision starts another one. Nothing is
// ended in order, since what would be closed may be another's.
[[noreturn]] void leave_cut_off(const RankPlace& place, const std::string& why) {
  say(text(place.name(), ": it ends: ", why));
  std::_Exit(kExitCutOff);
}

// WARNING: what an actor starts inherits a blocked signal (execve(2)) and would not end by TERM; a handler it does not
// inherit. A descriptor could be closed by who knows of none of ours.
class Ending {
 public:
  Ending() {
    (void)::sem_init(&told_, 0, 0);
    process_ = ::getpid();
    struct sigaction action {};
    action.sa_handler = [](int number) {
      const int error = errno;
      if (::getpid() != process_) {  // a child that has not executed a program of its own
        (void)std::signal(number, SIG_DFL);
        (void)std::raise(number);
      }
      (void)::sem_post(&told_);
      errno = error;
    };
    action.sa_flags = SA_RESTART;
    for (const int number : {SIGTERM, SIGINT}) (void)::sigaction(number, &action, nullptr);
  }
  // For TERM or INT, from the beginning of this on.
  void wait() const {
    while (::sem_wait(&told_) != 0 && errno == EINTR) {
    }
  }

 private:
  static inline sem_t told_;  // a handler knows nothing else
  static inline pid_t process_ = 0;
};

// What plugin code may call as long as the process lives, also from threads of its own while that exits.
RankHost& host_of(const RankProcess& process, bool watches) {
  static RankHost* const host = new RankHost(
      process.place, watches, [place = process.place](const std::string& why) { leave_cut_off(place, why); });
  return *host;
}

int serve(RankProcess& process) {
  RankHost& host = host_of(process, false);
  Actors actors;
  for (const RankManifest::Part& part : process.manifest.actors) {
    const std::string who = text(process.place.name(), ": actor ", part.name, ": ");
    const auto plugin = process.plugin_of(part);
    if (!plugin) return refuse(kExitBadPlugin, who + plugin.error().message);
    const auto found = (*plugin)->find_class(part.entry);
    if (!found) return refuse(kExitBadPlugin, who + found.error().message);
    const PlaceTexts texts(process, part.name, part.args);
    auto actor = ActorThread::make(**found, host.table(), texts.place());
    if (!actor) return refuse(kExitFailed, text(who, part.entry, " of ", part.plugin, ": ", actor.error().message));
    actors.emplace(part.name, std::move(*actor));
  }

  Intake intake(host.deliveries(), [&actors](const std::string& name) {
    const auto found = actors.find(name);
    return found == actors.end() ? nullptr : found->second.get();
  });
  auto door = DoorThread::start(
      process.place.post, serving_hello(process, actors),
      intake.handlers([&process](const std::string& why) { leave_cut_off(process.place, why); }), host.memory());
  if (!door) return refuse(kExitFailed, text(process.place.name(), ": ", door.error().message));
  (void)(*door)->wait(Instant::never());
  if (actors.size() == 1) actors.begin()->second->read_at(**door);
  const Ending ending;  // before that TERM does what it does to any process: nothing is there that could end in order
  say_ready();
  ending.wait();
  for (const auto& [name, actor] : actors) actor->begin_stop();
  for (const auto& [name, actor] : actors) actor->join();
  door->reset();
  host.end_calls();
  return kExitOk;
}

int drive(RankProcess& process) {
  const RankManifest::Part& part = *process.manifest.controller;
  const std::string who = text(process.place.name(), ": ");
  const auto plugin = process.plugin_of(part);
  if (!plugin) return refuse(kExitBadPlugin, who + plugin.error().message);
  const auto found = (*plugin)->find_controller(part.entry);
  if (!found) return refuse(kExitBadPlugin, who + found.error().message);
  RankHost& host = host_of(process, true);
  const auto named = NamedActors::open(process, **plugin, host);
  if (!named) return refuse(kExitFailed, who + named.error().message);
  Intake intake(host.deliveries(), [&named](const std::string& name) { return (*named)->find(name); });
  auto door = DoorThread::start(
      process.place.post, NamedActors::hello(process.place),
      intake.handlers([&process](const std::string& why) { leave_cut_off(process.place, why); }), host.memory());
  if (!door) return refuse(kExitFailed, who + door.error().message);
  if (const Status there = host.wait_for_post(); !there.ok()) return refuse(kExitFailed, who + there.error().message);
  say_ready();
  const PlaceTexts texts(process, "", part.args);
  const monarch_place_v1 place = texts.place();
  const StackWatch watch("the controller");
  const int code = (*found)->run(&host.table(), &place);
  if (!(*named)->stop(kNamedPatience)) {
    say(text(who, "named actors do not end"));
    (void)std::fflush(nullptr);
    std::_Exit(code);
  }
  door->reset();
  host.end_calls();
  return code;
}

}  // namespace

int rank_main(const std::vector<std::string>& arguments) {
  // What a plugin prints is seen line by line, as on a terminal.
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (const std::string why = why_stack_is_too_small(); !why.empty()) return refuse(kExitFailed, why);
  RankProcess process;
  if (arguments.size() == 2 && arguments[0] == "--tree") {
    process.tree = arguments[1];
  } else if (!arguments.empty()) {
    return refuse(kExitUsage, std::string(kUsage));
  }
  auto place = read_place([](const char* name) -> const char* { return ::getenv(name); });
  if (!place) return refuse(kExitUsage, place.error().message);
  process.place = std::move(*place);
  const char* const words = ::getenv(kActorsVariable.data());
  auto manifest = parse_rank_manifest(words == nullptr ? "" : words);
  if (!manifest) return refuse(kExitUsage, manifest.error().message);
  process.manifest = std::move(*manifest);
  process.copies = beside_this_program("plugins");
  StackWatch::begin();
  return process.manifest.controller ? drive(process) : serve(process);
}

}  // namespace monarch
