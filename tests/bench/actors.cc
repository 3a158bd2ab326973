// What scripts/bench actors measures, by a controller in C++ as a user's would be. It prints one JSON object.

#include <monarch/controller.hpp>
// Older headers have no Buffer; what is measured of them is compared with newer ones (scripts/actor_comparison.py).
#if __has_include(<monarch/buffer.hpp>)
#include <monarch/buffer.hpp>
#define HAS_BUFFER 1
#endif

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Whoever gives another answer has not got the bytes. One of each page: a call is measured, not who adds up.
static std::uint64_t some_of(std::string_view bytes) {
  std::uint64_t sum = bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += 4096) sum += static_cast<unsigned char>(bytes[i]);
  return sum;
}
static std::uint64_t all_of(std::string_view bytes) {
  std::uint64_t sum = bytes.size();
  for (const char byte : bytes) sum = sum * 31 + static_cast<unsigned char>(byte);
  return sum;
}

struct Echo : monarch::Actor {
  int nothing(int number) { return number; }
  std::uint64_t take(const monarch::codec::Bytes& bytes) { return some_of(bytes.data); }
  std::uint64_t take_all(const monarch::codec::Bytes& bytes) { return all_of(bytes.data); }
#ifdef HAS_BUFFER
  std::uint64_t view(const monarch::Buffer& buffer) { return some_of(buffer.view()); }
  std::uint64_t view_all(const monarch::Buffer& buffer) { return all_of(buffer.view()); }
#endif
  void wait() { ::pause(); }
  void die() { (void)::raise(SIGKILL); }
};

namespace {

using Echoes = monarch::ActorMesh<Echo>;

constexpr auto kPatience = 60s;  // a call that does not end is told, and ends the bench

double microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}
double at(std::vector<double> times, double share) {
  std::sort(times.begin(), times.end());
  return times[std::min(times.size() - 1, static_cast<std::size_t>(share * static_cast<double>(times.size())))];
}
void print(const std::string& name, double value) { std::printf("\"%s\": %.3f,\n", name.c_str(), value); }

template <class Run>
std::vector<double> timed(int runs, const Run& run) {
  std::vector<double> times;
  for (int i = 0; i < runs + runs / 10 + 1; ++i) {
    const auto begin = Clock::now();
    run();
    if (i > runs / 10) times.push_back(microseconds(begin));  // the first are warm-up
  }
  return times;
}

void must(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

void one_call(const std::string& where, const Echoes& one) {
  int number = 0;
  const auto times = timed(3000, [&] {
    ++number;
    must(one.call_one<&Echo::nothing>(number).get() == number, "another answer");
  });
  print(where + "_p50_us", at(times, 0.5));
  print(where + "_p99_us", at(times, 0.99));
  constexpr int kCalls = 40'000;
  std::deque<monarch::FutureOne<int>> under_way;
  const auto begin = Clock::now();
  for (int i = 0; i < kCalls; ++i) {
    under_way.push_back(one.call_one<&Echo::nothing>(i));
    if (under_way.size() < 512) continue;
    (void)under_way.front().get();
    under_way.pop_front();
  }
  for (const auto& call : under_way) (void)call.get();
  print(where + "_calls_per_s", kCalls / (microseconds(begin) / 1e6));
}

// Of 64 MiB a little less: a body is what an argument is written as, and may have no more than that.
constexpr std::array<std::size_t, 5> kSizes = {1U << 10U, 64U << 10U, 1U << 20U, 16U << 20U, 64U << 20U};
int runs_of(std::size_t size) { return size >= 16U << 20U ? 5 : size >= 1U << 20U ? 40 : 300; }

std::string content(std::size_t size) {
  std::string bytes(std::min(size, (std::size_t{64} << 20U) - 64), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 4099);
  return bytes;
}

// Each byte is compared once, and some of each page each time.
template <auto Take, auto TakeAll, class Argument>
void body(const std::string& name, const Echoes& one, const Argument& argument, const std::string& bytes, int runs) {
  must(one.call_one<TakeAll>(argument).get() == all_of(bytes), "other bytes");
  const std::uint64_t sum = some_of(bytes);
  print(name, at(timed(runs, [&] { must(one.call_one<Take>(argument).get() == sum, "other bytes"); }), 0.5));
}

void bodies(const std::string& where, const Echoes& one) {
  for (const std::size_t size : kSizes) {
    const std::string bytes = content(size);
    const std::string name = std::to_string(size >> 10U) + "KiB_us";
    body<&Echo::take, &Echo::take_all>(where + "_" + name, one, monarch::codec::Bytes{bytes}, bytes, runs_of(size));
#ifdef HAS_BUFFER
    const auto owner = std::make_shared<std::string>(bytes);
    body<&Echo::view, &Echo::view_all>(where + "_buffer_" + name, one, monarch::Buffer(*owner, owner), bytes,
                                       runs_of(size));
    auto filling = monarch::Buffer::make(bytes.size());
    std::memcpy(filling.data(), bytes.data(), bytes.size());
    body<&Echo::view, &Echo::view_all>(where + "_made_" + name, one, std::move(filling).done(), bytes, runs_of(size));
#endif
  }
}

void copies() {
  const std::string from = content(kSizes.back());
  std::string to(from.size(), 'x');
  const auto times = timed(runs_of(from.size()), [&] { std::memcpy(to.data(), from.data(), from.size()); });
  must(to == from, "other bytes");
  print("memcpy_65536KiB_us", at(times, 0.5));
}

}  // namespace

int calls(monarch::Controller& c) {
  const auto all = c.mesh("e").actors<Echo>("echo").within(kPatience);
  std::printf("{");
  one_call("near", all.at("host", 0).at("gpu", 0));
  one_call("far", all.at("host", 1).at("gpu", 0));
  bodies("near", all.at("host", 0).at("gpu", 0));
  copies();
  bodies("far", all.at("host", 1).at("gpu", 0));
  std::printf("\"ranks\": %zu}\n", all.size());
  return 0;
}

int wide(monarch::Controller& c) {
  const auto all = c.mesh("e").actors<Echo>("echo").within(kPatience);
  const auto times = timed(300, [&] { must(all.call<&Echo::nothing>(1).get().size() == all.size(), "answers"); });
  std::printf("{");
  print("p50_us", at(times, 0.5));
  std::printf("\"ranks\": %zu}\n", all.size());
  return 0;
}

// From the death of a rank until all that waited for it has ended, and until the same handle gives a value again.
int deaths(monarch::Controller& c) {
  const auto victim = c.mesh("e").actors<Echo>("echo").within(kPatience).at("host", 1).at("gpu", 1);
  std::vector<double> ended;
  std::vector<double> back;
  for (int i = 0; i < c.args().get<int>("times"); ++i) {
    victim.ready(10s);
    const auto begin = Clock::now();
    std::vector<monarch::FutureOne<void>> waiting;
    waiting.push_back(victim.call_one<&Echo::die>());
    for (int call = 0; call < 64; ++call) waiting.push_back(victim.call_one<&Echo::wait>());
    for (const auto& call : waiting) must(!call.collect(10s), "a dead rank answers");
    ended.push_back(microseconds(begin) / 1000);
    while (!victim.call_one<&Echo::nothing>(i).collect(10s)) {
    }
    back.push_back(microseconds(begin) / 1000);
  }
  std::printf("{");
  print("ended_p50_ms", at(ended, 0.5));
  print("ended_p99_ms", at(ended, 0.99));
  print("back_p50_ms", at(back, 0.5));
  std::printf("\"deaths\": %zu}\n", ended.size());
  return 0;
}

#ifdef HAS_BUFFER
MONARCH_PLUGIN(MONARCH_ACTOR(Echo, &Echo::nothing, &Echo::take, &Echo::take_all, &Echo::view, &Echo::view_all,
                             &Echo::wait, &Echo::die))
#else
MONARCH_PLUGIN(MONARCH_ACTOR(Echo, &Echo::nothing, &Echo::take, &Echo::take_all, &Echo::wait, &Echo::die))
#endif
MONARCH_CONTROLLER(calls)
MONARCH_CONTROLLER(wide)
MONARCH_CONTROLLER(deaths)
