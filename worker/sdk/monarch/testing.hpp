#pragma once

// Actors in a test of a user's, without a cluster: a job of meshes whose actors live in this process. What is called
// runs at once, on the thread that calls, so that a test needs no waits; a Reply may be answered later, by any thread.
//
//   monarch::testing::Job job;
//   job.mesh("trainer", {{"host", 2}, {"gpu", 4}});
//   auto all = job.actors<Greeter>("trainer", "greeter", monarch::Args().set("lr", 0.1));
//   all.call(&Greeter::say_hello, "world").get();       as in a job
//   job.actor<Greeter>("trainer", "greeter", 3)         the object itself
//   job.lose("trainer", 3);                             calls to it are RankLost from now on; on_failure hears of it
//   auto controller = job.controller();                 for drive(controller)
//
// The class has to stand in a MONARCH_PLUGIN that is compiled with the test. One job at a time.
//
// Thread: that of the test; Replies any.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/actor.hpp>
#include <monarch/actors.hpp>
#include <monarch/codec.hpp>
#include <monarch/controller.hpp>
#include <monarch/mesh.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {
namespace testing {

class MONARCH_SEEN Job {
 public:
  Job() {
    host_.struct_size = offsetof(monarch_host_v1, reply_with);  // what is called comes in one
    host_.reply = [](monarch_delivery_v1* delivery, monarch_bytes_v1 result) {
      end(delivery, {.kind = MONARCH_VALUE, .value = result, .type = "", .text = ""});
    };
    host_.fail = [](monarch_delivery_v1* delivery, const char* type, const char* text, const char* /*traceback*/) {
      end(delivery, {.kind = MONARCH_REMOTE_ERROR, .value = {"", 0}, .type = type, .text = text});
    };
    host_.is_cancelled = [](const monarch_delivery_v1*) { return 0; };
    host_.call = [](const monarch_host_v1* host, const monarch_call_v1* call) { return of(host).call(*call); };
    host_.cancel = [](const monarch_host_v1*, std::uint64_t) {};
    host_.mesh = [](const monarch_host_v1* host, const char* name, monarch_place_v1* place) {
      return of(host).describe(name, *place) ? 1 : 0;
    };
    host_.watch = [](const monarch_host_v1* host, void (*watcher)(void*, const char*, const monarch_answer_v1*),
                     void* user) {
      of(host).watcher_ = {watcher, user};
    };
    host_.extension = [](const monarch_host_v1*, const char*) -> const void* { return nullptr; };
    host_.runtime = this;
    detail::known_host() = &host_;
    mesh("controller", {{"one", 1}});
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    for (auto& [where, one] : actors_) one.of->destroy(one.object);
    detail::known_host() = nullptr;
  }

  void mesh(const std::string& name, std::vector<Dimension> dims) {
    Described& mesh = meshes_[name];
    mesh.dims = std::move(dims);
    for (const Dimension& dim : mesh.dims) {
      mesh.names.push_back(dim.name.c_str());
      mesh.sizes.push_back(dim.size);
    }
  }
  // Makes one for each rank. BadArguments where there is no such mesh or class; else what the constructor lets out, as
  // an Error.
  template <class C>
  ActorMesh<C> actors(const std::string& mesh, const std::string& actor, const Args& args = {}) {
    const View view = view_of(mesh);
    for (std::size_t rank = 0; rank < view.size(); ++rank) {
      const std::string why =
          make({mesh, actor, static_cast<std::uint32_t>(rank)}, detail::class_name<C>(), args.encoded());
      if (!why.empty()) throw BadArguments(actor + ": " + why);
    }
    return ActorMesh<C>(actor, view);
  }
  template <class C>
  C& actor(const std::string& mesh, const std::string& actor, std::uint32_t rank) {
    return *static_cast<C*>(actors_.at({mesh, actor, rank}).object);
  }
  void lose(const std::string& mesh, std::uint32_t rank, const std::string& cause = "killed by SIGKILL") {
    lost_[{mesh, rank}] = cause;
    if (watcher_.run != nullptr) {
      const monarch_answer_v1 lost =
          answer_of(rank, {.kind = MONARCH_RANK_LOST, .value = {"", 0}, .type = "", .text = cause.c_str()});
      watcher_.run(watcher_.user, mesh.c_str(), &lost);
    }
  }
  Controller controller(const Args& args = {}) {
    args_ = args.encoded();
    return Controller(&host_, place_of({"controller", "", 0}, args_));
  }

 private:
  using Where = std::tuple<std::string, std::string, std::uint32_t>;  // mesh, actor, rank
  struct Described {
    std::vector<Dimension> dims;
    std::vector<const char*> names;
    std::vector<std::uint32_t> sizes;
  };
  struct One {
    const monarch_class_v1* of = nullptr;
    void* object = nullptr;
  };
  struct End {
    std::uint32_t kind = MONARCH_VALUE;
    monarch_bytes_v1 value;
    const char* type;
    const char* text;
  };
  // Owners: its deliveries.
  struct UnderWay {
    monarch_call_v1 call;
    std::mutex mutex;
    std::size_t left = 0;
  };
  struct Delivery {
    std::shared_ptr<UnderWay> of;
    std::uint32_t rank = 0;
  };

  static Job& of(const monarch_host_v1* host) { return *static_cast<Job*>(host->runtime); }
  static monarch_answer_v1 answer_of(std::uint32_t rank, const End& end) {
    return {.struct_size = sizeof(monarch_answer_v1),
            .kind = end.kind,
            .rank = rank,
            .reserved = 0,
            .generation = 1,
            .value = end.value,
            .type = end.type,
            .text = end.text,
            .traceback = ""};
  }
  static void end(const std::shared_ptr<UnderWay>& of, std::uint32_t rank, const End& end) {
    const monarch_answer_v1 answer = answer_of(rank, end);
    const std::lock_guard lock(of->mutex);
    const bool quiet = (of->call.flags & MONARCH_CALL_QUIET) != 0 && end.kind == MONARCH_VALUE;
    if (!quiet) of->call.on_answer(of->call.user, &answer);
    if (--of->left == 0) of->call.on_answer(of->call.user, nullptr);
  }
  static void end(monarch_delivery_v1* delivery, const End& ended) {
    const std::unique_ptr<Delivery> mine(reinterpret_cast<Delivery*>(delivery));
    end(mine->of, mine->rank, ended);
  }

  bool describe(const std::string& name, monarch_place_v1& place) const {
    const auto found = meshes_.find(name);
    if (found == meshes_.end()) return false;
    place.dim_count = static_cast<std::uint32_t>(found->second.sizes.size());
    place.dim_names = found->second.names.data();
    place.dim_sizes = found->second.sizes.data();
    return true;
  }
  View view_of(const std::string& mesh) const {
    const auto found = meshes_.find(mesh);
    if (found == meshes_.end()) throw BadArguments("the job has no mesh " + mesh);
    return View(mesh, found->second.dims);
  }
  // `where` and `args` are read by whoever gets it.
  monarch_place_v1 place_of(const Where& where, const std::string& args) const {
    monarch_place_v1 place{};
    place.struct_size = sizeof place;
    place.rank = std::get<2>(where);
    place.generation = 1;
    place.mesh = std::get<0>(where).c_str();
    place.actor = std::get<1>(where).c_str();
    place.host = "here";
    place.why_restarted = "";
    place.args = {args.data(), args.size()};
    (void)describe(std::get<0>(where), place);
    return place;
  }
  // Why there is none.
  std::string make(const Where& where, const std::string& class_name, const std::string& args) {
    for (const monarch_class_v1* const of : detail::Registry::here().classes) {
      if (of->name != class_name) continue;
      std::array<char, 4096> why{};
      const monarch_place_v1 place = place_of(where, args);
      void* const object = of->create(&host_, &place, why.data(), why.size());
      if (object == nullptr) return why.data();
      One& one = actors_[where];
      if (one.object != nullptr) one.of->destroy(one.object);
      one = {of, object};
      return "";
    }
    return "MONARCH_ACTOR of the class has to be in a MONARCH_PLUGIN of the test";
  }

  std::uint64_t call(const monarch_call_v1& asked) {
    const auto under_way = std::make_shared<UnderWay>();
    under_way->call = asked;
    for (std::size_t i = 0; i < asked.ranks_count; ++i) under_way->left += asked.ranks[i].count;
    if (under_way->left == 0) asked.on_answer(asked.user, nullptr);
    for (std::size_t i = 0; i < asked.ranks_count; ++i) {
      for (std::uint32_t k = 0; k < asked.ranks[i].count; ++k) {
        run(under_way, asked, asked.ranks[i].first + k * asked.ranks[i].step);
      }
    }
    return ++calls_;
  }
  void run(const std::shared_ptr<UnderWay>& under_way, const monarch_call_v1& asked, std::uint32_t rank) {
    const auto ends = [&](std::uint32_t kind, const std::string& text) {
      end(under_way, rank, {.kind = kind, .value = {"\xc0", 1}, .type = "", .text = text.c_str()});
    };
    if (const auto lost = lost_.find({asked.mesh, rank}); lost != lost_.end())
      return ends(MONARCH_RANK_LOST, lost->second);
    if (std::string(asked.actor) == "monarch") return make_named(under_way, asked, rank);
    const auto actor = actors_.find({asked.mesh, asked.actor, rank});
    if (actor == actors_.end()) return ends(MONARCH_REFUSED, std::string("the rank has no actor ") + asked.actor);
    if (std::string(asked.endpoint) == "monarch.ready") return ends(MONARCH_VALUE, "");
    const monarch_class_v1& of = *actor->second.of;
    for (std::uint32_t i = 0; i < of.endpoint_count; ++i) {
      if (std::string(of.endpoints[i].name) != asked.endpoint) continue;
      auto delivery = std::make_unique<Delivery>(Delivery{under_way, rank});
      return of.endpoints[i].invoke(actor->second.object, asked.arguments, &host_,
                                    reinterpret_cast<monarch_delivery_v1*>(delivery.release()));
    }
    ends(MONARCH_REFUSED, std::string("actor ") + asked.actor + " has no endpoint " + asked.endpoint);
  }
  void make_named(const std::shared_ptr<UnderWay>& under_way, const monarch_call_v1& asked, std::uint32_t rank) {
    std::tuple<std::string, std::string, codec::Bytes> what;
    codec::DecodeError error;
    std::string why = error.what;
    const bool read = codec::decode(detail::view_of(asked.arguments), what, error);
    const auto& [name, class_name, args] = what;
    if (!read) why = error.what;
    if (read && !actors_.contains({asked.mesh, name, rank}))
      why = make({asked.mesh, name, rank}, class_name, args.data);
    end(under_way, rank,
        {.kind = why.empty() ? std::uint32_t{MONARCH_VALUE} : std::uint32_t{MONARCH_REMOTE_ERROR},
         .value = {"\xc0", 1},
         .type = "monarch::NotMade",
         .text = why.c_str()});
  }

  struct Watcher {
    void (*run)(void*, const char*, const monarch_answer_v1*) = nullptr;
    void* user = nullptr;
  };
  monarch_host_v1 host_{};
  std::map<std::string, Described> meshes_;
  std::map<Where, One> actors_;
  std::map<std::pair<std::string, std::uint32_t>, std::string> lost_;  // why
  Watcher watcher_;
  std::string args_;
  std::uint64_t calls_ = 0;
};

}  // namespace testing
}  // namespace MONARCH_INSIDE
}  // namespace monarch
