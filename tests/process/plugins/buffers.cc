// Senders and readers of large bodies, each of whose bytes is known to both, while others break things; some Buffers
// are kept, and looked at again and again. Buffers that are kept for ever; and bytes to and from a plugin that was
// built before there were any.

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

// Where a Buffer lies: the inode.
std::string memory_at(const char* place) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  for (std::string range, modes, offset, device, inode, rest; maps >> range >> modes >> offset >> device >> inode;) {
    std::getline(maps, rest);
    const std::size_t dash = range.find('-');
    const bool before = std::stoull(range.substr(0, dash), nullptr, 16) <= at;
    if (before && at < std::stoull(range.substr(dash + 1), nullptr, 16)) return inode;
  }
  return {};
}

struct Seen {
  std::uint64_t seed = 0;  // 0: something differs
  std::string memory;
};
MONARCH_FIELDS(Seen, seed, memory)

struct Hoarder : monarch::Actor {
  Seen look(const Buffer& buffer) { return {seed_of(buffer.view()), memory_at(buffer.data())}; }
  Seen keep(const Buffer& buffer) {
    kept_.push_back(buffer);
    return look(buffer);
  }
  // Whether all are as they were: they came with seeds from 1 on.
  bool are_as_they_were() {
    std::uint64_t seed = 0;
    return std::all_of(kept_.begin(), kept_.end(), [&](const Buffer& one) { return seed_of(one.view()) == ++seed; });
  }
  void drop() { kept_.clear(); }
  std::vector<Buffer> kept_;
};
using Hoarders = monarch::ActorMesh<Hoarder>;

// What both hosts have kept of Buffers that are sent until this process has no block left.
struct Hoard {
  explicit Hoard(const Hoarders& all) : hoarders(all), known(all.size()) {}

  void fill_blocks() {
    for (std::uint64_t sent = 0; sent < kHoarded; sent += kBytes) {
      const auto seen = hoarders.call<&Hoarder::keep>(made_one()).get();
      for (const auto& [rank, one] : seen) {
        right = right && one.seed == seed;
        known[rank].insert(one.memory);
      }
    }
  }
  // How many of the ranks read it where they have read one before.
  std::size_t look() {
    std::size_t in_blocks = 0;
    for (const auto& [rank, one] : hoarders.call<&Hoarder::look>(made_one()).get()) {
      right = right && one.seed == seed;
      in_blocks += known[rank].count(one.memory);
    }
    most_lent = std::max(most_lent, bytes_of(memory("rw-s")));
    return in_blocks;
  }
  void look_at_kept() {
    for (const auto& [rank, are] : hoarders.call<&Hoarder::are_as_they_were>().get()) right = right && are;
  }

  static constexpr std::size_t kBytes = 2U << 20U;
  static constexpr std::uint64_t kHoarded = 136U << 20U;
  const Hoarders hoarders;
  std::vector<std::set<std::string>> known;  // by rank: memory that was kept
  std::uint64_t seed = 0;
  bool right = true;
  std::uint64_t most_lent = 0;  // bytes

 private:
  // Every other one is copied into its block.
  Buffer made_one() {
    ++seed;
    if (seed % 2 == 0) return made(kBytes / sizeof seed, seed);
    std::string bytes(kBytes, '\0');
    fill(bytes.data(), bytes.size(), seed);
    return Buffer(bytes);
  }
};

int hoards(monarch::Controller& controller) {
  Hoard hoard(controller.mesh("t").actors<Hoarder>("hoarder").within(20s));
  hoard.fill_blocks();
  const std::string end = controller.args().get<std::string>("end");
  std::cout << "kept" << std::endl;
  std::size_t without = 0;  // bodies that went in no block to the first rank, which is on this host
  do {
    if (hoard.look() == 0) ++without;
    std::this_thread::sleep_for(50ms);
  } while (!std::ifstream(end));
  hoard.look_at_kept();
  hoard.hoarders.call<&Hoarder::drop>().get();
  std::size_t in_blocks = 0;
  for (int i = 0; i < 12; ++i) in_blocks += hoard.look();
  std::cout << "{\"right\": " << (hoard.right ? "true" : "false") << ", \"without\": " << without
            << ", \"in_blocks\": " << in_blocks << ", \"most_lent\": " << hoard.most_lent << "}" << std::endl;
  return 0;
}

// As the one of built_before.c.
struct Store : monarch::Actor {
  Buffer echo(const Buffer& buffer) { return buffer; }
  Buffer echo_beside(const Buffer& buffer) { return buffer; }
};

int today(monarch::Controller& controller) {
  const std::vector<std::size_t> sizes{0, 1, 100, 16'383, 16'384, 49'152, 65'536, 1U << 20U, (8U << 20U) + 1};
  const auto bytes_for = [](std::size_t size, std::size_t i) {
    std::string bytes(size, static_cast<char>('a' + i % 26));
    for (std::size_t at = 0; at < size; at += 61) bytes[at] = static_cast<char>(at / 61 + i);
    return bytes;
  };
  const auto before = controller.mesh("t").actors<Store>("before").within(20s);
  bool right = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string bytes = bytes_for(sizes[i], i);
    Buffer::Filling filling = Buffer::make(bytes.size());
    std::copy(bytes.begin(), bytes.end(), filling.data());
    for (const auto& [rank, back] : before.call<&Store::echo>(std::move(filling).done()).get()) {
      right = right && back.view() == bytes;
    }
  }
  std::vector<std::pair<std::string, decltype(before.call<&Store::echo>(Buffer()))>> all;
  for (std::size_t i = 0; i < 2 * sizes.size(); ++i) {
    std::string bytes = bytes_for(sizes[i / 2], i);
    const Buffer buffer(bytes);
    all.emplace_back(std::move(bytes),
                     i % 2 == 0 ? before.call<&Store::echo>(buffer) : before.call<&Store::echo_beside>(buffer));
  }
  for (const auto& [bytes, future] : all) {
    for (const auto& [rank, back] : future.get()) right = right && back.view() == bytes;
  }
  std::cout << (right ? "ok before" : "not ok before") << std::endl;
  return right ? 0 : 1;
}

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
               MONARCH_ACTOR(Sender, &Sender::run, &Sender::sent, &Sender::settle),
               MONARCH_ACTOR(Hoarder, &Hoarder::look, &Hoarder::keep, &Hoarder::are_as_they_were, &Hoarder::drop),
               MONARCH_ACTOR(Store, &Store::echo, MONARCH_CONCURRENT(&Store::echo_beside, 8)))
MONARCH_CONTROLLER(buffers)
MONARCH_CONTROLLER(hoards)
MONARCH_CONTROLLER(today)
