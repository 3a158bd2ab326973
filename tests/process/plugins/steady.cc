// A controller that calls without end while others break things, and actors that know what they have run.

#include <monarch/controller.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHADOWED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED
#endif

class Tally : public monarch::Actor {
 public:
  // Gives the generation and the process that has run it.
  std::pair<std::uint64_t, int> run(int number) {
    const std::lock_guard lock(mutex_);
    if (!seen_.insert(number).second) ++twice_;
    return {context().generation, static_cast<int>(::getpid())};
  }
  std::pair<std::uint64_t, int> run_beside(int number) { return run(number); }
  int twice() {
    const std::lock_guard lock(mutex_);
    return twice_;
  }
  // How many calls of it have not followed the one before.
  int follow(int number, const monarch::codec::Bytes& /*whatever*/) {
    if (number != last_ + 1) ++disorder_;
    last_ = number;
    return disorder_;
  }
  monarch::codec::Bytes give_back(const monarch::codec::Bytes& bytes) { return bytes; }
  void restore(const monarch::Context& context) {
    restored_ = std::to_string(context.generation) + ": " + context.why_restarted;
  }
  std::string restored() { return restored_; }
  // What costs its own rank, and nobody else.
  void block() { std::this_thread::sleep_for(1h); }
  void crash() { *static_cast<volatile int*>(nullptr) = 1; }
  void leave() { ::_exit(3); }
  // As a library that would be a daemon does.
  void shut() {
    for (int fd = 3; fd < 4096; ++fd) (void)::close(fd);
  }
  // Up to the limit that an operator has set. A sanitizer ends the process there, once it has told all that it knows,
  // which takes longer than anybody waits.
  void leak() {
#ifdef SHADOWED
    for (int i = 0; i < 64; ++i) leaked_.emplace_back(1U << 20U, 'x');
    throw std::bad_alloc();
#else
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    rlimit limit{};
    (void)::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (64U << 20U);
    (void)::setrlimit(RLIMIT_AS, &limit);
    for (;;) leaked_.emplace_back(1U << 20U, 'x');
#endif
  }
  // As much as goes to that rank, for so long; gives how much that was.
  int flood(const monarch::ActorMesh<Tally>& whom, int milliseconds) {
    monarch::codec::Bytes bytes;
    bytes.data.assign(1U << 18U, 'x');
    int sent = 0;
    for (const auto end = Clock::now() + std::chrono::milliseconds(milliseconds); Clock::now() < end; ++sent) {
      whom.broadcast<&Tally::swallow>(bytes);
    }
    return sent;
  }
  void swallow(const monarch::codec::Bytes& bytes) { swallowed_ += bytes.data.size(); }

 private:
  std::mutex mutex_;
  std::set<int> seen_;
  int last_ = 0;
  int disorder_ = 0;
  int twice_ = 0;
  std::string restored_;
  std::uint64_t swallowed_ = 0;
  std::vector<std::string> leaked_;
};

namespace {

struct Seen {
  std::map<monarch::Kind, int> kinds;
  std::map<std::uint32_t, std::uint64_t> generations;  // by rank, the latest
  std::map<std::uint32_t, std::set<int>> processes;
  std::set<std::string> words;  // of what was no value
  int wrong = 0;                // calls without exactly one outcome of each rank
  std::chrono::milliseconds worst{0};
};

template <class Call>
void take(Seen& seen, const Call& call, std::size_t ranks, Clock::time_point began) {
  const auto outcomes = call.collect();
  seen.worst = std::max(seen.worst, std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began));
  std::set<std::uint32_t> heard;
  for (const auto& outcome : outcomes) {
    heard.insert(outcome.rank);
    ++seen.kinds[outcome.kind];
    if (outcome) {
      seen.generations[outcome.rank] = std::max(seen.generations[outcome.rank], outcome->first);
      seen.processes[outcome.rank].insert(outcome->second);
    } else {
      seen.words.insert(outcome.text);
    }
  }
  if (heard.size() != ranks || outcomes.size() != ranks) ++seen.wrong;
}

const char* name_of(monarch::Kind kind) {
  switch (kind) {
    case monarch::Kind::kValue: return "value";
    case monarch::Kind::kRemoteError: return "remote_error";
    case monarch::Kind::kRankLost: return "lost";
    case monarch::Kind::kDeadlineExceeded: return "deadline";
    case monarch::Kind::kBusy: return "busy";
    case monarch::Kind::kGone: return "gone";
    case monarch::Kind::kCancelled: return "cancelled";
    case monarch::Kind::kRefused: return "refused";
  }
  return "?";
}

}  // namespace

// Until a file is there, and at least as many calls as args say.
int steady(monarch::Controller& controller) {
  const auto all = controller.mesh("t").actors<Tally>("tally");
  const auto least = controller.args().get<int>("calls");
  const auto end = controller.args().get<std::string>("end");
  const auto width = controller.args().get<std::size_t>("width", 16);
  using Call = decltype(all.call<&Tally::run>(0));
  std::deque<std::pair<Call, Clock::time_point>> under_way;
  Seen seen;
  int number = 0;
  const auto take_first = [&] {
    take(seen, under_way.front().first, all.size(), under_way.front().second);
    under_way.pop_front();
  };
  while (number < least || ::access(end.c_str(), F_OK) != 0) {
    ++number;
    under_way.emplace_back(number % 2 == 0 ? all.call<&Tally::run>(number) : all.call<&Tally::run_beside>(number),
                           Clock::now());
    if (under_way.size() >= width) take_first();
    if (number == 64) std::cout << "begun" << std::endl;
    if (number >= least) std::this_thread::sleep_for(200us);
  }
  while (!under_way.empty()) take_first();
  // A rank that was lost may have been back too late for any of them.
  all.ready(10s);
  take(seen, all.call<&Tally::run>(++number), all.size(), Clock::now());
  const int twice = all.fold<&Tally::twice>(0, [](int sum, int more) { return sum + more; });
  std::cout << "{\"calls\": " << number << ", \"twice\": " << twice << ", \"wrong\": " << seen.wrong
            << ", \"worst_ms\": " << seen.worst.count() << ", \"restored\": [";
  for (const auto& [rank, text] : all.call<&Tally::restored>().get()) {
    std::cout << (rank > 0 ? ", " : "") << '"' << text << '"';
  }
  std::cout << "], \"kinds\": {";
  for (auto at = seen.kinds.begin(); at != seen.kinds.end(); ++at) {
    std::cout << (at == seen.kinds.begin() ? "" : ", ") << '"' << name_of(at->first) << "\": " << at->second;
  }
  std::cout << "}, \"generations\": [";
  for (const auto& [rank, generation] : seen.generations) std::cout << (rank > 0 ? ", " : "") << generation;
  std::cout << "], \"processes\": [";
  for (const auto& [rank, processes] : seen.processes) std::cout << (rank > 0 ? ", " : "") << processes.size();
  std::cout << "], \"words\": [";
  for (auto at = seen.words.begin(); at != seen.words.end(); ++at) {
    std::cout << (at == seen.words.begin() ? "" : ", ") << '"' << *at << '"';
  }
  std::cout << "]}" << std::endl;
  return 0;
}

// Each way to spoil a rank, one after another; its neighbours answer all the while.
int spoil(monarch::Controller& controller) {
  const auto all = controller.mesh("t").actors<Tally>("tally");
  const auto one = all.at("host", 1).at("gpu", 1);
  const auto others = all.at("host", 0);
  const auto report = [&](const char* what, const auto& outcome) {
    std::cout << what << ": " << name_of(outcome.kind) << ": " << outcome.text << std::endl;
    (void)others.template call<&Tally::run>(0).get(5s);
  };
  report("crash", one.call_one<&Tally::crash>().collect());
  report("while it is down", one.call_one<&Tally::run>(1).collect());
  one.ready(10s);
  report("again", one.call_one<&Tally::run>(1).collect());
  report("leave", one.call_one<&Tally::leave>().collect());
  one.ready(10s);
  report("shut", one.call_one<&Tally::shut>().collect());
  one.ready(10s);
  report("leak", one.call_one<&Tally::leak>().collect());
  report("crash", one.call_one<&Tally::crash>().collect());
  one.ready(10s);
  report("block", one.within(100ms).call_one<&Tally::block>().collect());
  std::map<monarch::Kind, int> kinds;
  std::vector<monarch::FutureOne<std::pair<std::uint64_t, int>>> calls;
  for (int i = 0; i < 1100; ++i) calls.push_back(one.within(1500ms).call_one<&Tally::run>(i));
  for (const auto& call : calls) ++kinds[call.collect().kind];
  for (const auto& [kind, count] : kinds) std::cout << "behind it: " << name_of(kind) << " " << count << std::endl;
  (void)others.call<&Tally::run>(0).get(5s);
  return 7;
}

// Two ranks of a host flood one of the other; its neighbour answers all the while.
int flood(monarch::Controller& controller) {
  const auto all = controller.mesh("t").actors<Tally>("tally");
  const auto victim = all.at("host", 0).at("gpu", 0);
  const auto neighbour = all.at("host", 0).at("gpu", 1);
  const auto floods = all.at("host", 1).call<&Tally::flood>(victim, 2000);
  std::cout << "begun" << std::endl;
  std::chrono::milliseconds worst{0};
  for (int i = 0; !floods.ready(); ++i) {
    const auto began = Clock::now();
    (void)neighbour.call_one<&Tally::run>(i).get(60s);
    worst = std::max(worst, std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began));
  }
  int sent = 0;
  for (const auto& [rank, count] : floods.get()) sent += count;
  std::cout << "flooded by " << sent << ", worst " << worst.count() << " ms" << std::endl;
  return 0;
}

// Large bodies to another host and back, among small calls in their order, while their connection is cut.
int carry(monarch::Controller& controller) {
  const auto far = controller.mesh("t").actors<Tally>("tally").at("host", 1).at("gpu", 0);
  monarch::codec::Bytes large;
  large.data.resize(std::size_t{63} << 20U);  // and little else: a rank's queue has 64 MiB
  for (std::size_t i = 0; i < large.data.size(); ++i) large.data[i] = static_cast<char>(i * 31 + (i >> 16U));
  const monarch::codec::Bytes warm{large.data.substr(0, std::size_t{300} << 10U)};
  const auto go = controller.args().get<std::string>("go");
  std::cout << "ready" << std::endl;
  while (::access(go.c_str(), F_OK) != 0) std::this_thread::sleep_for(5ms);
  int wrong = 0;
  // The first goes the other way, and opens the connection.
  for (int i = 0; i < 20; ++i) wrong += far.call_one<&Tally::give_back>(warm).get().data == warm.data ? 0 : 1;
  std::map<monarch::Kind, int> kinds;
  int number = 0;
  const auto rounds = controller.args().get<int>("rounds");
  for (int round = 0; round < rounds; ++round) {
    std::cout << "round " << round << std::endl;
    const std::string begins = go + "." + std::to_string(round);  // once somebody looks
    while (::access(begins.c_str(), F_OK) != 0) {
      wrong +=
          far.call_one<&Tally::give_back>(warm).get().data == warm.data ? 0 : 1;  // by a connection, sooner or later
      std::this_thread::sleep_for(20ms);
    }
    const auto first = far.call_one<&Tally::follow>(++number, monarch::codec::Bytes{"small"});
    const auto answer = far.call_one<&Tally::give_back>(large);
    const auto second = far.call_one<&Tally::follow>(++number, warm);
    const auto third = far.call_one<&Tally::follow>(++number, monarch::codec::Bytes{});
    const auto outcome = answer.collect();
    ++kinds[outcome.kind];
    if (outcome.kind == monarch::Kind::kValue && answer.get().data != large.data) ++wrong;
    for (const auto* const one : {&first, &second, &third}) wrong += one->get();
  }
  std::cout << "wrong " << wrong;
  for (const auto& [kind, count] : kinds) std::cout << ", " << name_of(kind) << " " << count;
  std::cout << std::endl;
  return 0;
}

int throws(monarch::Controller& /*controller*/) { throw std::runtime_error("nothing goes on"); }

MONARCH_PLUGIN(MONARCH_ACTOR(Tally, &Tally::run, MONARCH_CONCURRENT(&Tally::run_beside, 4), &Tally::twice,
                             &Tally::restored, &Tally::block, &Tally::crash, &Tally::leave, &Tally::shut, &Tally::leak,
                             &Tally::flood, &Tally::swallow, &Tally::follow, &Tally::give_back))
MONARCH_CONTROLLER(steady)
MONARCH_CONTROLLER(spoil)
MONARCH_CONTROLLER(flood)
MONARCH_CONTROLLER(carry)
MONARCH_CONTROLLER(throws)
