#include "worker/rank/rank_main.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/door_thread.h"
#include "worker/rank/plugin.h"
#include "worker/rank/rank_host.h"
#include "worker/rank/rank_manifest.h"
#include "worker/rank/rank_words.h"

namespace monarch {

namespace {

constexpr std::string_view kUsage = "usage: monarch-rank [--tree FOLDER]   (`monarch run` starts it)";

// What the process is, once for all; of the plugins it never lets go.
struct Process {
  RankPlace place;
  RankManifest manifest;
  std::string tree;
  std::map<std::string, std::unique_ptr<Plugin>> plugins;

  Result<const Plugin*> plugin_of(const RankManifest::Part& part) {
    const bool below = part.plugin.front() != '/' && !tree.empty();
    const std::string path = below ? text(tree, '/', part.plugin) : part.plugin;
    auto& plugin = plugins[path];
    if (plugin == nullptr) {
      MONARCH_ASSIGN(plugin, Plugin::open(path, part.sha256));
    }
    return static_cast<const Plugin*>(plugin.get());
  }
};

// The dims and names of a place as C reads them.
class PlaceTexts {
 public:
  PlaceTexts(const Process& process, const RankManifest::Part& part, std::string actor)
      : process_(process), part_(part), actor_(std::move(actor)) {
    for (const auto& [name, size] : process.manifest.dims) {
      names_.push_back(name.c_str());
      sizes_.push_back(size);
    }
  }
  monarch_place_v1 place() const {
    return {.struct_size = sizeof(monarch_place_v1),
            .rank = process_.place.rank,
            .generation = process_.place.generation,
            .mesh = process_.place.mesh.c_str(),
            .actor = actor_.c_str(),
            .host = process_.place.host.c_str(),
            .why_restarted = "",
            .dim_count = static_cast<std::uint32_t>(sizes_.size()),
            .reserved = 0,
            .dim_names = names_.data(),
            .dim_sizes = sizes_.data(),
            .args = {part_.args.data(), part_.args.size()}};
  }

 private:
  const Process& process_;
  const RankManifest::Part& part_;
  std::string actor_;
  std::vector<const char*> names_;
  std::vector<std::uint32_t> sizes_;
};

int refuse(int code, const std::string& message) {
  say(message);
  return code;
}

// Of every actor; answered here: it is made.
constexpr std::string_view kReadyEndpoint = "monarch.ready";

using Actors = std::map<std::string, std::unique_ptr<ActorThread>>;

PostHello serving_hello(const Process& process, const Actors& actors) {
  PostHello hello;
  hello.mesh = process.place.mesh;
  hello.rank = process.place.rank;
  hello.generation = process.place.generation;
  hello.serves = true;
  for (const auto& [name, actor] : actors) {
    RankActor told{.name = name, .class_name = actor->of().name, .endpoints = {}};
    for (std::uint32_t i = 0; i < actor->of().endpoint_count; ++i) {
      const monarch_endpoint_v1& endpoint = actor->of().endpoints[i];
      told.endpoints.push_back({.name = endpoint.name, .signature = endpoint.signature});
    }
    told.endpoints.push_back({.name = std::string(kReadyEndpoint), .signature = "*"});
    hello.actors.push_back(std::move(told));
  }
  return hello;
}

// What the post gives this rank to run.
class Intake {
 public:
  Intake(Deliveries& deliveries, const Actors& actors) : deliveries_(deliveries), actors_(actors) {}

  void heard(const DoorThread::Connection& by, DoorClient::Heard& heard) {
    (void)route(heard.frame.header, heard.frame.payload,
                when<PostDeliver>([&](PostDeliver&& given) { deliver(by, std::move(given), heard.descriptors); }),
                when<PostTakeBack>([&](PostTakeBack&& back) { deliveries_.take_back(back.delivery, by); }));
  }

 private:
  void deliver(const DoorThread::Connection& by, PostDeliver given, std::vector<UniqueFd>& beside) {
    const auto actor = actors_.find(given.target.actor);
    const monarch_endpoint_v1* const endpoint =
        actor == actors_.end() ? nullptr : actor->second->find(given.target.endpoint);
    auto body = DoorBody::take(std::move(given.body), beside);
    if (endpoint != nullptr && body.ok()) {
      actor->second->put({.endpoint = endpoint,
                          .arguments = std::move(*body),
                          .delivery = deliveries_.add(given.delivery, by, actor->second.get())});
      return;
    }
    if (given.target.endpoint == kReadyEndpoint && actor != actors_.end()) {
      constexpr std::string_view kNil = "\xc0";
      return (void)by->send(PostReply{.delivery = given.delivery, .outcome = {}}, kNil);
    }
    // The post knows what there is, so this is not what it should have sent.
    PostReply reply;
    reply.delivery = given.delivery;
    reply.outcome.kind = OutcomeKind::kRemoteError;
    reply.outcome.type = "monarch::NotDelivered";
    reply.outcome.text =
        endpoint == nullptr ? text("no ", given.target.actor, '.', given.target.endpoint) : body.error().message;
    (void)by->send(std::move(reply), {});
  }

  Deliveries& deliveries_;
  const Actors& actors_;
};

void wait_for_end(const sigset_t& ends) {
  int number = 0;
  while (::sigwait(&ends, &number) != 0) {
  }
}

int serve(Process& process) {
  // Every thread from here on leaves these to this one.
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGINT}) ::sigaddset(&ends, number);
  (void)::pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  RankHost host(process.place, false);
  Actors actors;
  for (const RankManifest::Part& part : process.manifest.actors) {
    const std::string who = text(process.place.name(), ": actor ", part.name, ": ");
    const auto plugin = process.plugin_of(part);
    if (!plugin) return refuse(kExitBadPlugin, who + plugin.error().message);
    const auto found = (*plugin)->find_class(part.entry);
    if (!found) return refuse(kExitBadPlugin, who + found.error().message);
    const PlaceTexts texts(process, part, part.name);
    auto actor = ActorThread::make(**found, host.table(), texts.place());
    if (!actor) return refuse(kExitFailed, text(who, part.entry, " of ", part.plugin, ": ", actor.error().message));
    host.know(part.name, actor->get());
    actors.emplace(part.name, std::move(*actor));
  }

  Intake intake(host.deliveries(), actors);
  auto door = DoorThread::start(
      process.place.post, serving_hello(process, actors),
      {.came = [](const DoorThread::Connection&) {},
       .heard = [&](const DoorThread::Connection& by, DoorClient::Heard& heard) { intake.heard(by, heard); },
       .ended = [&](const DoorThread::Connection& by, const std::string&) { host.deliveries().ended(by); }});
  if (!door) return refuse(kExitFailed, door.error().message);
  if ((*door)->wait(Instant::never()) != nullptr) say_ready();
  wait_for_end(ends);
  for (const auto& [name, actor] : actors) actor->begin_stop();
  for (const auto& [name, actor] : actors) actor->join();
  door->reset();
  host.end_calls();
  return kExitOk;
}

int drive(Process& process) {
  const RankManifest::Part& part = *process.manifest.controller;
  const std::string who = text(process.place.name(), ": ");
  const auto plugin = process.plugin_of(part);
  if (!plugin) return refuse(kExitBadPlugin, who + plugin.error().message);
  const auto found = (*plugin)->find_controller(part.entry);
  if (!found) return refuse(kExitBadPlugin, who + found.error().message);
  RankHost host(process.place, true);
  if (!host.wait_for_post()) return kExitFailed;
  say_ready();
  const PlaceTexts texts(process, part, "");
  const monarch_place_v1 place = texts.place();
  const int code = (*found)->run(&host.table(), &place);
  host.end_calls();
  return code;
}

}  // namespace

int rank_main(const std::vector<std::string>& arguments) {
  // What a plugin prints is seen line by line, as on a terminal.
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Process process;
  if (arguments.size() == 2 && arguments[0] == "--tree") {
    process.tree = arguments[1];
  } else if (!arguments.empty()) {
    return refuse(kExitUsage, std::string(kUsage));
  }
  auto place = read_place([](const char* name) -> const char* { return ::getenv(name); });
  if (!place) return refuse(kExitUsage, place.error().message);
  process.place = std::move(*place);
  const char* const words = ::getenv("MONARCH_ACTORS");
  auto manifest = parse_rank_manifest(words == nullptr ? "" : words);
  if (!manifest) return refuse(kExitUsage, manifest.error().message);
  process.manifest = std::move(*manifest);
  return process.manifest.controller ? drive(process) : serve(process);
}

}  // namespace monarch
