#pragma once

// Controllers: the one program that drives a job's actors.
//
//   int drive(monarch::Controller& c) { … return 0; }
//   MONARCH_CONTROLLER(drive)
//
// What it returns is the job's exit code; what it throws ends the job with 1 and its text.
//
// Thread: the controller's own; futures and handles may be used by others that it starts.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>
#include <monarch/actor.hpp>
#include <monarch/actors.hpp>
#include <monarch/future.hpp>
#include <monarch/mesh.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

// A mesh of the job.
class MONARCH_SEEN Mesh {
 public:
  Mesh(std::string name, const std::vector<Dimension>& dims) : view_(std::move(name), dims) {}
  // The actors of this name and class in it.
  template <class C>
  ActorMesh<C> actors(std::string actor) const {
    return ActorMesh<C>(std::move(actor), view_);
  }
  const View& view() const { return view_; }
  std::size_t size() const { return view_.size(); }

 private:
  View view_;
};

// Something that supervision has seen fail.
struct MONARCH_SEEN Failure {
  std::string mesh;
  std::uint32_t rank = 0;        // the first of those that failed together
  std::uint64_t generation = 0;  // that has ended
  std::string cause;             // and what supervision does about it
};

class MONARCH_SEEN Controller {
 public:
  Controller(const monarch_host_v1* host, const monarch_place_v1& place)
      : host_(host), context_(context_of(place)), args_(detail::view_of(place.args)) {}
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  const Context& context() const { return context_; }
  // What the spec gives it.
  const Args& args() const { return args_; }

  // BadArguments where the job has no mesh of that name.
  Mesh mesh(const std::string& name) const {
    monarch_place_v1 place{};
    place.struct_size = sizeof place;
    if (host_->mesh(host_, name.c_str(), &place) == 0) throw BadArguments("the job has no mesh " + name);
    std::vector<Dimension> dims;
    for (std::uint32_t i = 0; i < place.dim_count; ++i) {
      dims.push_back({.name = place.dim_names[i], .size = place.dim_sizes[i]});
    }
    return Mesh(name, dims);
  }

  // The one actor of this name in the job: monarch/actors.hpp.
  template <class C>
  ActorMesh<C> named(const std::string& name, const Args& args = {}) const {
    return v1::named<C>(name, args);
  }

  // Errors of broadcasts, so far.
  std::uint64_t broadcast_failures() const { return detail::BroadcastFailures::here().count(); }
  // For each failure from now on, on a thread of the runtime; it must not wait. Once. Also for each error of a
  // broadcast, with rank and text.
  void on_failure(std::function<void(const Failure&)> run) {
    if (on_failure_) throw BadArguments("on_failure was set before");
    on_failure_ = std::make_unique<std::function<void(const Failure&)>>(std::move(run));
    host_->watch(
        host_,
        [](void* user, const char* mesh, const monarch_answer_v1* lost) {
          const Failure failure{.mesh = mesh, .rank = lost->rank, .generation = lost->generation, .cause = lost->text};
          detail::guarded([&] { (*static_cast<std::function<void(const Failure&)>*>(user))(failure); },
                          [](const std::string& type, const std::string& text) {
                            (void)std::fprintf(stderr, "monarch: on_failure let out %s: %s\n", type.c_str(),
                                               text.c_str());
                          });
        },
        on_failure_.get());
    detail::BroadcastFailures::here().tell([run = *on_failure_](const detail::CallState& call,
                                                                const detail::CallState::Answered& ended,
                                                                const std::string& what) {
      run({.mesh = call.mesh(),
           .rank = ended.rank,
           .generation = ended.generation,
           .cause = "broadcast of " + what + ": " + (ended.type.empty() ? "" : ended.type + ": ") + ended.text});
    });
  }

 private:
  const monarch_host_v1* host_;
  Context context_;
  Args args_;
  std::unique_ptr<std::function<void(const Failure&)>> on_failure_;  // until the process ends
};

namespace detail {

template <auto F>
int run_controller(const monarch_host_v1* host, const monarch_place_v1* place) {
  known_host() = host;
  int code = 1;
  guarded(
      [&] {
        // The host may call on_failure for as long as the process lives.
        static std::unique_ptr<Controller> controller;
        controller = std::make_unique<Controller>(host, *place);
        if constexpr (IsTask<decltype(F(*controller))>::value) {
          code = F(*controller).run();
        } else {
          code = F(*controller);
        }
      },
      [](const std::string& type, const std::string& text) {
        (void)std::fprintf(stderr, "monarch: the controller let out %s: %s\n", type.c_str(), text.c_str());
      });
  return code;
}

template <auto F>
const monarch_controller_v1* describe_controller(const char* name) {
  static const monarch_controller_v1 described{
      .struct_size = sizeof described, .reserved = 0, .name = name, .run = &run_controller<F>};
  return &described;
}

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch

// Any number of them, of different names; the spec says which.
#define MONARCH_CONTROLLER(entry)                                                                                 \
  namespace {                                                                                                     \
  [[maybe_unused]] const bool monarch_controller_##entry =                                                        \
      ::monarch::detail::Registry::here().add_controller(::monarch::detail::describe_controller<&entry>(#entry)); \
  }
