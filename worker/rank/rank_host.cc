#include "worker/rank/rank_host.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/buffers.h"

namespace monarch {

namespace {

constexpr std::int64_t kLongestWait = std::int64_t{100} * 365 * 24 * 3600 * 1'000'000'000;

std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

std::string_view view_of(monarch_bytes_v1 bytes) {
  return bytes.size == 0 ? std::string_view() : std::string_view(static_cast<const char*>(bytes.data), bytes.size);
}

PostHello caller_hello(const RankPlace& place, bool watches) {
  PostHello hello;
  hello.version = kPostDoorVersion;
  hello.mesh = place.mesh;
  hello.rank = place.rank;
  hello.generation = place.generation;
  hello.watches = watches;
  return hello;
}

void reply(monarch_delivery_v1* delivery, monarch_bytes_v1 result) {
  delivery->of->answer(delivery, {}, view_of(result));
}

void reply_with(monarch_delivery_v1* delivery, const monarch_reply_v1* result) {
  const bool has_read = (result->flags & MONARCH_REPLY_HAS_READ) != 0;
  delivery->of->answer(delivery, {}, BodyPieces(result->pieces, result->piece_count),
                       has_read ? Deliveries::Arguments::kHasRead : Deliveries::Arguments::kMayBeRead);
}

void fail(monarch_delivery_v1* delivery, const char* type, const char* text, const char* traceback) {
  CallOutcome outcome;
  outcome.kind = OutcomeKind::kRemoteError;
  outcome.type = text_of(type);
  outcome.text = with_threads_limit(text_of(text));
  outcome.traceback = text_of(traceback);
  delivery->of->answer(delivery, std::move(outcome), {});
}

int is_cancelled(const monarch_delivery_v1* delivery) { return delivery->unwanted ? 1 : 0; }

}  // namespace

RankHost::RankHost(const RankPlace& place, bool watches, Calls::CutOff cut_off)
    : calls_(place.post, caller_hello(place, watches), std::move(cut_off), memory_) {
  table_.struct_size = sizeof table_;
  table_.reply = &reply;
  table_.reply_with = &reply_with;
  table_.fail = &fail;
  table_.is_cancelled = &is_cancelled;
  table_.call = [](const monarch_host_v1* host, const monarch_call_v1* call) { return of(host).calls_.call(*call); };
  table_.cancel = [](const monarch_host_v1* host, std::uint64_t call) { of(host).calls_.cancel(call); };
  table_.mesh = [](const monarch_host_v1* host, const char* name, monarch_place_v1* described) {
    return of(host).describe(text_of(name), *described) ? 1 : 0;
  };
  table_.watch = [](const monarch_host_v1* host,
                    void (*on_failure)(void* user, const char* mesh, const monarch_answer_v1* lost), void* user) {
    of(host).calls_.watch([on_failure, user](const Calls::Failure& failure) {
      const monarch_answer_v1 lost{.struct_size = sizeof lost,
                                   .kind = MONARCH_RANK_LOST,
                                   .rank = failure.rank,
                                   .reserved = 0,
                                   .generation = failure.generation,
                                   .value = {"", 0},
                                   .type = "",
                                   .text = failure.cause.c_str(),
                                   .traceback = ""};
      on_failure(user, failure.mesh.c_str(), &lost);
    });
  };
  table_.extension = &RankHost::extension;
  table_.runtime = this;
}

const void* RankHost::extension(const monarch_host_v1* /*host*/, const char* name) {
  static const monarch_waiting_v1 waiting{
      .struct_size = sizeof waiting,
      .reserved = 0,
      .begin =
          [](const monarch_host_v1* host, std::uint64_t call, char* why, std::size_t why_size) {
            const std::string ring = of(host).begin_wait(call);
            if (!ring.empty()) (void)std::snprintf(why, why_size, "%s", ring.c_str());
            return ring.empty() ? 0 : 1;
          },
      .end = [](const monarch_host_v1* host, std::uint64_t call) { of(host).calls_.end_wait(call); }};
  static const monarch_reading_v1 reading{
      .struct_size = sizeof reading,
      .reserved = 0,
      .wait =
          [](const monarch_host_v1* host, const void* key, int (*done)(void* user), void* user, std::int64_t within) {
            const Duration patience = Duration::nanoseconds(std::clamp(within, std::int64_t{0}, kLongestWait));
            return of(host).calls_.read_until(
                       key, [=] { return done(user) != 0; }, boot_now() + patience)
                       ? 1
                       : 0;
          },
      .wake = [](const monarch_host_v1* host, const void* key) { of(host).calls_.wake_readers(key); },
      .attend = [](const monarch_host_v1* host, std::uint64_t call) { of(host).calls_.attend(call); },
      .run = [](const monarch_host_v1* host, void (*run)(void* user),
                void* user) { of(host).calls_.run([run, user] { run(user); }); }};
  static const monarch_buffers_v1 buffers{.struct_size = sizeof buffers,
                                          .reserved = 0,
                                          .hold_arguments = &hold_arguments,
                                          .hold_value = &hold_value,
                                          .make = [](const monarch_host_v1* host, std::size_t size,
                                                     void** data) { return make_memory(of(host).memory_, size, data); },
                                          .drop = &drop_memory};
  const std::string_view asked(name);
  if (asked == MONARCH_BUFFERS_V1) return &buffers;
  if (asked == MONARCH_WAITING_V1) return &waiting;
  return asked == MONARCH_READING_V1 ? &reading : nullptr;
}

Status RankHost::wait_for_post() { return calls_.wait(); }

std::string RankHost::begin_wait(std::uint64_t call) {
  if (calls_.is_here()) return "a wait on the thread that brings the answers (of then(), of on_failure()) has no end";
  const ActorThread::Present present = ActorThread::present();
  return present.actor == nullptr ? std::string() : calls_.begin_wait(call, *present.actor, present.delivery);
}

bool RankHost::describe(const std::string& mesh, monarch_place_v1& place) {
  const RosterMesh* const known = calls_.mesh(mesh);
  if (known == nullptr) return false;
  const std::lock_guard lock(mutex_);
  const auto [at, is_new] = dims_.try_emplace(mesh);
  Dims& dims = at->second;
  if (is_new) {
    for (const RosterDim& dim : known->dims) {
      dims.names.push_back(dim.name);
      dims.sizes.push_back(dim.size);
    }
    for (const std::string& name : dims.names) dims.name_pointers.push_back(name.c_str());
  }
  place.dim_count = static_cast<std::uint32_t>(dims.sizes.size());
  place.dim_names = dims.name_pointers.data();
  place.dim_sizes = dims.sizes.data();
  return true;
}

}  // namespace monarch
