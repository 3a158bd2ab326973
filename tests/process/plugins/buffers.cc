// Senders and readers of large bodies, each of whose bytes is known to both, while others break things; some Buffers
// are kept, and looked at again and again.

#include <monarch/controller.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using monarch::Buffer;

namespace {

constexpr std::size_t kLeastWords = (64U << 10U) / sizeof(std::uint64_t);
constexpr std::size_t kMostWords = (8U << 20U) / sizeof(std::uint64_t);
constexpr std::size_t kKept = 6;

std::uint64_t word_of(std::uint64_t seed, std::size_t place) { return (seed + place) * 0x9E3779B97F4A7C15U; }

// The first word is the seed of the others.
void fill(char* bytes, std::size_t size, std::uint64_t seed) {
  for (std::size_t i = 0; i < size / sizeof seed; ++i) {
    const std::uint64_t word = i == 0 ? seed : word_of(seed, i);
    std::memcpy(bytes + i * sizeof word, &word, sizeof word);
  }
}
// The seed; 0: some byte differs.
std::uint64_t seed_of(std::string_view bytes) {
  std::uint64_t seed = 0;
  std::uint64_t differs = 0;
  for (std::size_t i = 0; i < bytes.size() / sizeof seed; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    if (i == 0) seed = word;
    if (i > 0) differs |= word ^ word_of(seed, i);
  }
  return differs == 0 ? seed : 0;
}
Buffer made(std::size_t words, std::uint64_t seed) {
  Buffer::Filling filling = Buffer::make(words * sizeof seed);
  fill(filling.data(), filling.size(), seed);
  return std::move(filling).done();
}

// What this process lends ("rw-s"), or reads of others ("r--s"): bytes by inode.
std::map<std::string, std::uint64_t> memory(const std::string& how) {
  std::map<std::string, std::uint64_t> memory;
  std::ifstream maps("/proc/self/maps");
  for (std::string range, modes, offset, device, inode, rest; maps >> range >> modes >> offset >> device >> inode;) {
    std::getline(maps, rest);
    if (modes != how || rest.find("monarch-memory") == std::string::npos) continue;
    const std::size_t dash = range.find('-');
    memory[inode] += std::stoull(range.substr(dash + 1), nullptr, 16) - std::stoull(range.substr(0, dash), nullptr, 16);
  }
  return memory;
}
std::uint64_t bytes_of(const std::map<std::string, std::uint64_t>& memory) {
  std::uint64_t bytes = 0;
  for (const auto& [inode, size] : memory) bytes += size;
  return bytes;
}

// Buffers that stay for a while, and what they were.
class Kept {
 public:
  void keep(const Buffer& buffer) {
    kept_.emplace_back(seed_of(buffer.view()), buffer);
    if (kept_.size() > kKept) kept_.pop_front();
  }
  bool are_as_they_were() const {
    return std::all_of(kept_.begin(), kept_.end(),
                       [](const auto& one) { return one.first != 0 && seed_of(one.second.view()) == one.first; });
  }
  void drop() { kept_.clear(); }

 private:
  std::deque<std::pair<std::uint64_t, Buffer>> kept_;
};

struct Reader : monarch::Actor {
  // The seed; 0: something differs, be it in what is kept.
  std::uint64_t take(const Buffer& buffer, bool keeps) {
    const std::uint64_t seed = seed_of(buffer.view());
    if (keeps) kept_.keep(buffer);
    return kept_.are_as_they_were() ? seed : 0;
  }
  std::uint64_t copy(const monarch::codec::Bytes& bytes) { return seed_of(bytes.data); }
  Buffer give(std::uint64_t words, std::uint64_t seed) { return made(words, seed); }
  std::uint64_t settle() {
    kept_.drop();
    return bytes_of(memory("r--s"));
  }
  Kept kept_;
};
using Readers = monarch::ActorMesh<Reader>;

struct Sent {
  std::uint64_t values = 0;
  std::uint64_t lost = 0;  // of ranks or posts that were killed
  std::uint64_t wrong = 0;
  std::uint64_t most_lent = 0;  // bytes
};
MONARCH_FIELDS(Sent, values, lost, wrong, most_lent)

struct Sender : monarch::Actor {
  // Until there is a file of that name.
  void run(const Readers& readers, const std::string& end) {
    while (!std::ifstream(end)) round(readers);
  }
  Sent sent() { return sent_; }
  // Whether blocks come back: after everything was dropped no new one is needed.
  bool settle(const Readers& readers) {
    kept_.drop();
    const auto one = readers.at("gpu", 0).at("host", 0);
    std::set<std::string> before;
    for (int i = 0; i < 12; ++i) {
      const Buffer buffer(std::string(kMostWords, 'x'));
      (void)one.call_one<&Reader::take>(buffer, false).get();
      if (i == 6) {
        for (const auto& [inode, size] : memory("rw-s")) before.insert(inode);
      }
    }
    const auto now = memory("rw-s");
    return std::all_of(now.begin(), now.end(), [&](const auto& reader) { return before.contains(reader.first); });
  }

 private:
  std::size_t some_words() {
    const std::size_t words = kLeastWords << random_() % 8;
    return std::min(words + random_() % kLeastWords, kMostWords);
  }
  template <class F>
  void count(const F& future, std::uint64_t seed) {
    for (const auto& outcome : future.collect()) {
      if (outcome) ++(*outcome == seed ? sent_.values : sent_.wrong);
      if (!outcome) ++sent_.lost;
    }
  }
  void round(const Readers& readers) {
    const std::uint64_t seed = (std::uint64_t{context().rank} << 48U) + ++number_;
    const auto near = readers.at("gpu", static_cast<std::uint32_t>(random_() % 4));
    const auto one = near.at("host", static_cast<std::uint32_t>(random_() % 2));
    const bool keeps = random_() % 4 == 0;
    const std::size_t words = some_words();
    const Buffer buffer = made(words, seed);
    std::string bytes(some_words() * sizeof seed, '\0');
    fill(bytes.data(), bytes.size(), seed + 1);
    const auto as_it_is = near.call<&Reader::take>(buffer, keeps);  // both hosts read the same
    const auto copied = one.call<&Reader::take>(Buffer(bytes), !keeps);
    const auto out = one.call<&Reader::copy>(monarch::codec::Bytes{bytes});
    const auto given = one.call<&Reader::give>(std::uint64_t{words}, seed + 2);
    count(as_it_is, seed);
    count(copied, seed + 1);
    count(out, seed + 1);
    for (const auto& outcome : given.collect()) {
      if (!outcome) ++sent_.lost;
      if (!outcome) continue;
      ++(seed_of(outcome->view()) == seed + 2 ? sent_.values : sent_.wrong);
      if (keeps) kept_.keep(*outcome);
    }
    if (seed_of(buffer.view()) != seed || !kept_.are_as_they_were()) ++sent_.wrong;
    sent_.most_lent = std::max(sent_.most_lent, bytes_of(memory("rw-s")));
  }

  std::mt19937_64 random_{context().rank};
  std::uint64_t number_ = 0;
  Kept kept_;
  Sent sent_;
};

int buffers(monarch::Controller& controller) {
  const auto readers = controller.mesh("t").actors<Reader>("reader").slice("gpu", 4, 8).within(20s);
  const auto senders = controller.mesh("t").actors<Sender>("sender").slice("gpu", 0, 4);
  const std::string end = controller.args().get<std::string>("end");
  senders.broadcast<&Sender::run>(readers, end);  // a post that is killed ends the calls, but nothing that runs
  std::cout << "begun" << std::endl;
  while (!std::ifstream(end)) std::this_thread::sleep_for(10ms);
  senders.ready(20s);
  Sent all;
  for (const auto& outcome : senders.call<&Sender::sent>().collect()) {
    const Sent& sent = outcome.get();
    all.values += sent.values;
    all.lost += sent.lost;
    all.wrong += sent.wrong;
    all.most_lent = std::max(all.most_lent, sent.most_lent);
  }
  readers.ready(20s);
  std::uint64_t most_read = 0;
  for (const auto& [rank, read] : readers.call<&Reader::settle>().get()) most_read = std::max(most_read, read);
  bool all_back = true;
  for (const auto& [rank, back] : senders.call<&Sender::settle>(readers).get()) all_back = all_back && back;
  std::cout << "{\"values\": " << all.values << ", \"lost\": " << all.lost << ", \"wrong\": " << all.wrong
            << ", \"most_lent\": " << all.most_lent << ", \"most_read\": " << most_read
            << ", \"all_back\": " << (all_back ? "true" : "false") << "}" << std::endl;
  return 0;
}

}  // namespace

MONARCH_PLUGIN(MONARCH_ACTOR(Reader, &Reader::take, &Reader::copy, &Reader::give, &Reader::settle),
               MONARCH_ACTOR(Sender, &Sender::run, &Sender::sent, &Sender::settle))
MONARCH_CONTROLLER(buffers)
