// What scripts/bench actors measures, by a controller in C++ as a user's would be. It prints one JSON object.

#include <monarch/controller.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Echo : monarch::Actor {
  int nothing(int number) { return number; }
  // Whoever gives another answer than the sum has not got the bytes.
  std::uint64_t take(const monarch::codec::Bytes& bytes) {
    std::uint64_t sum = bytes.data.size();
    for (std::size_t i = 0; i < bytes.data.size(); i += 4096) sum += static_cast<unsigned char>(bytes.data[i]);
    return sum;
  }
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

void bodies(const std::string& where, const Echoes& one) {
  for (std::size_t size = 1U << 10U; size <= 64U << 20U; size <<= 2U) {
    monarch::codec::Bytes bytes;
    bytes.data.assign(std::min(size, (std::size_t{64} << 20U) - 64), 'x');
    const std::uint64_t sum = bytes.data.size() + (bytes.data.size() + 4095) / 4096 * 'x';
    const int runs = size >= 16U << 20U ? 5 : size >= 1U << 20U ? 40 : 300;
    const auto times = timed(runs, [&] { must(one.call_one<&Echo::take>(bytes).get() == sum, "other bytes"); });
    print(where + "_" + std::to_string(size >> 10U) + "KiB_us", at(times, 0.5));
  }
}

}  // namespace

int calls(monarch::Controller& c) {
  const auto all = c.mesh("e").actors<Echo>("echo").within(kPatience);
  std::printf("{");
  one_call("near", all.at("host", 0).at("gpu", 0));
  one_call("far", all.at("host", 1).at("gpu", 0));
  bodies("near", all.at("host", 0).at("gpu", 0));
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

MONARCH_PLUGIN(MONARCH_ACTOR(Echo, &Echo::nothing, &Echo::take, &Echo::wait, &Echo::die))
MONARCH_CONTROLLER(calls)
MONARCH_CONTROLLER(wide)
MONARCH_CONTROLLER(deaths)
