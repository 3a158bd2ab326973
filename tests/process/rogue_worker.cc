// A worker that means harm, for the tests of whole jobs: its key is of the job, and it does what the test orders.
//
// As MONARCH_WORKER it is started wherever a worker is. On the host ROGUE_HOST it is the rogue; everywhere else, and as
// guard or daemon, it becomes the real worker ROGUE_REAL_WORKER. The rogue takes orders, a word and a number each, from
// the FIFO ROGUE_FOLDER/orders, and answers each with a line in ROGUE_FOLDER/answers. It beats as an honest host does;
// of ranks that it is to start it says that they run. It leaves when it is told to.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/process/rogue_posts.h"
#include "tests/transport/wire/stretched.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/message.h"
#include "transport/messages/output.h"
#include "transport/messages/rank.h"
#include "transport/messages/roster.h"
#include "transport/messages/stacks.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/reconnecting_client.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {
namespace {

constexpr std::size_t kFarTooLarge = 4U << 20U;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) {
    std::fprintf(stderr, "%s is not set\n", name);
    std::exit(2);
  }
  return value;
}

[[noreturn]] void become_real(char** argv) {
  const std::string real = variable("ROGUE_REAL_WORKER");
  (void)::execv(real.c_str(), argv);
  std::perror(real.c_str());
  std::exit(2);
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "rogue: %s\n", result.error().message.c_str());
    std::exit(3);
  }
  return std::move(result).value();
}

struct Order {
  JobUuid job;
  Bootstrap bootstrap;
  std::string bytes;
};

Order read_order() {
  std::string bytes;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got <= 0) std::exit(4);
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
    const auto frame = decode_frame(bytes, limits::kControlPayloadBytes);
    if (!frame.ok()) continue;
    return {frame->header.job, must(decode_payload<Bootstrap>(frame->payload)), bytes};
  }
}

// What was read from standard input is there to be read again.
void put_back(const std::string& bytes) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0 || ::write(ends[1], bytes.data(), bytes.size()) < 0) std::exit(5);
  (void)::dup2(ends[0], STDIN_FILENO);
  (void)::close(ends[0]);
  (void)::close(ends[1]);
}

ClientOptions dial(const std::string& endpoint, const std::string& server_key, const std::string& address = {}) {
  ClientOptions options;
  if (!address.empty()) options.address = address;
  options.port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
  options.server_key = must(CurvePublicKey::parse(server_key));
  options.link.message_bytes = kFarTooLarge;  // its own limit must not stop it
  return options;
}

class Rogue {
 public:
  explicit Rogue(Order order)
      : job_(order.job),
        bootstrap_(std::move(order.bootstrap)),
        folder_(variable("ROGUE_FOLDER")),
        keys_(must(make_curve_key_pair())),
        events_(must(EventLoop::create())),
        loop_(*events_),
        context_(must(ZmqContext::create({.io_threads = 1}))),
        posts_(*context_, loop_, keys_, job_, HostId(bootstrap_.host)) {}

  int run() {
    tell_launcher();
    const auto control = dial(bootstrap_.control_endpoint, bootstrap_.server_public_key);
    control_ = must(ReconnectingClient::start(*context_, loop_, control, keys_, 1,
                                              {.on_message = [this](std::vector<ZmqFrame>&& frames) { hear(frames); },
                                               .on_connected = [this] { (void)say(hello(bootstrap_.host)); },
                                               .on_disconnected = [] {},
                                               .on_refused = [](const Error&) {}}));
    const auto bulk = dial(bootstrap_.bulk_endpoint, bootstrap_.server_public_key);
    bulk_ = must(ReconnectingClient::start(*context_, loop_, bulk, keys_, 2,
                                           {.on_message = [](std::vector<ZmqFrame>&&) {},
                                            .on_connected = [] {},
                                            .on_disconnected = [] {},
                                            .on_refused = [](const Error&) {}}));
    const std::string orders = folder_ + "/orders";
    const UniqueFd fifo(::open(orders.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fifo.valid()) return 6;
    (void)must(events_->watch(fifo.get(), Interest::kRead, [&](Readiness) { read_orders(fifo.get()); }));
    beat();
    while (!events_->stopped()) {
      loop_.turn(boot_now() + Duration::milliseconds(20));
      obey_all();
    }
    return 0;
  }

 private:
  void tell_launcher() {
    Frame frame;
    frame.header.job = job_;
    frame.payload = encode_payload(BootstrapReply{.public_key = keys_.public_key.to_text(),
                                                  .keeper_pid = ::getpid(),
                                                  .boot_id = {},
                                                  .version = MONARCH_VERSION,
                                                  .error = {}});
    const std::string bytes = encode_frame(frame);
    (void)!::write(STDOUT_FILENO, bytes.data(), bytes.size());
    (void)::close(STDOUT_FILENO);
    (void)::open("/dev/null", O_WRONLY);
  }

  Hello hello(std::uint32_t host) const {
    Hello hello;
    hello.host = host;
    hello.host_name = bootstrap_.host_name;
    hello.incarnation = 1;
    hello.keeper_pid = ::getpid();
    hello.version = MONARCH_VERSION;
    return hello;
  }

  void hear(const std::vector<ZmqFrame>& frames) {
    if (frames.empty()) return;
    const auto header = decode_header(frames[0].bytes());
    if (!header.ok() || frames.size() < 2) return;
    const std::string_view payload = frames[1].bytes();
    switch (header->type) {
      case number_of<Shutdown>(): return loop_.stop();
      case number_of<Roster>(): return posts_.take(must(decode_payload<Roster>(payload)));
      case number_of<VaultTable>(): vaults_ = must(decode_payload<VaultTable>(payload)); return;
      case number_of<Reserve>(): return reserve(must(decode_payload<Reserve>(payload)));
      case number_of<Start>(): return start(must(decode_payload<Start>(payload)));
      case number_of<Stop>(): return end(must(decode_payload<Stop>(payload)).ranks);
      default: return;
    }
  }

  void reserve(const Reserve& order) {
    Reserved reserved{.mesh = order.mesh, .gang = order.gang, .generation = order.generation};
    for (std::uint32_t i = 0; i < order.count; ++i) reserved.ports.push_back(static_cast<std::uint16_t>(50'000 + i));
    reserved.ports.insert(reserved.ports.end(), order.fixed.begin(), order.fixed.end());
    (void)say(reserved);
  }

  void start(const Start& order) {
    for (const RankStart& each : order.ranks) {
      RankReport& report = ranks_[each.rank];
      report = {.process = {each.rank, order.generation}, .phase = RankPhase::kRunning};
      report.pid = ::getpid();
      report.started_at = boot_now();
      report.ready = true;
    }
  }

  void end(const std::vector<RankId>& ranks) {
    for (const RankId& rank : ranks) {
      const auto held = ranks_.find(rank);
      if (held == ranks_.end()) continue;
      held->second.phase = RankPhase::kEnded;
      held->second.ended_at = boot_now();
      held->second.end.kind = EndKind::kExited;
      held->second.output_complete = true;
    }
  }

  void beat() {
    (void)say(next_beat());
    (void)events_->at(events_->now() + bootstrap_.heartbeat, [this] { beat(); });
  }

  Beat next_beat() {
    Beat beat;
    beat.seq = ++seq_;
    beat.sent_at = boot_now();
    for (const auto& [rank, report] : ranks_) beat.content.ranks.push_back(report);
    if (has_vault_) beat.content.vault = VaultReport{.port = 1, .table = vaults_.version};
    if (has_post_) beat.content.post = PostReport{.port = 1};
    return beat;
  }

  std::vector<ZmqFrame> frames_of(std::uint16_t type, std::string payload, const JobUuid& job,
                                  std::uint64_t later = 0) {
    FrameHeader header;
    header.type = type;
    header.job = job;
    header.term = Term(bootstrap_.term.value() + later);
    if (!ranks_.empty()) {
      header.process = ranks_.begin()->second.process;
    }
    std::vector<ZmqFrame> frames;
    frames.push_back(ZmqFrame::copy(encode_header(header)));
    frames.push_back(ZmqFrame::take(std::move(payload)));
    return frames;
  }

  template <class Message>
  bool say(const Message& message) {
    auto frames = frames_of(number_of<Message>(), encode_payload(message), job_);
    return control_->send(frames).ok();
  }

  // As often as ordered, however long the queue is full.
  void repeat(int times, ReconnectingClient& client, const std::function<std::vector<ZmqFrame>()>& make) {
    for (int i = 0; i < times;) {
      auto frames = make();
      if (client.send(frames).ok()) ++i;
      loop_.turn(boot_now() + Duration::milliseconds(1));
    }
  }

  void read_orders(int fifo) {
    std::array<char, 256> buffer{};
    const ssize_t got = ::read(fifo, buffer.data(), buffer.size());
    if (got <= 0) return;
    orders_.append(buffer.data(), static_cast<std::size_t>(got));
  }

  // Not from the loop, which turns while an order is carried out.
  void obey_all() {
    std::istringstream lines(std::exchange(orders_, {}));
    std::string word;
    int number = 0;
    while (lines >> word >> number) {
      std::ofstream(folder_ + "/answers", std::ios::app) << word << ' ' << obey(word, number) << std::endl;
    }
  }

  std::uint64_t obey(const std::string& word, int number) {
    const auto valid = [this] { return frames_of(number_of<Beat>(), encode_payload(next_beat()), job_); };
    const auto of_size = [this](std::size_t bytes) {
      return [this, bytes] { return frames_of(number_of<Beat>(), std::string(bytes, 'x'), job_); };
    };
    if (word == "forge") {
      repeat(number, *control_, [this] { return frames_of(number_of<Hello>(), encode_payload(hello(0)), job_); });
    } else if (word == "foreign") {
      JobUuid other = job_;
      other.bytes[0] ^= 1U;
      repeat(number, *control_, [&] { return frames_of(number_of<Beat>(), encode_payload(next_beat()), other); });
    } else if (word == "term") {
      repeat(number, *control_,
             [this] { return frames_of(number_of<Beat>(), encode_payload(next_beat()), job_, 1'000); });
    } else if (word == "malformed") {
      repeat(number, *control_, of_size(100));
    } else if (word == "oversize") {
      repeat(number, *control_, of_size(limits::kControlPayloadBytes + 1));
    } else if (word == "huge") {
      repeat(number, *control_, of_size(limits::kControlPayloadBytes + kDisconnectSlack + 1));
    } else if (word == "frames") {
      repeat(number, *control_, [] { return std::vector<ZmqFrame>(kFramesPerMessage + 1); });
    } else if (word == "endless") {
      const auto bytes = std::make_shared<const std::string>(limits::kControlPayloadBytes, 'x');
      repeat(1, *control_, [&] {
        std::vector<ZmqFrame> frames;
        for (int frame = 0; frame < number; ++frame) frames.push_back(ZmqFrame::hold(*bytes, bytes));
        return frames;
      });
    } else if (word == "output") {
      repeat(number, *bulk_, [this] { return frames_of(number_of<Output>(), encode_payload(Output{}), job_); });
    } else if (word == "stretch") {
      return stretch(number == 0);
    } else if (word == "exaggerate") {
      return exaggerate();
    } else if (word == "finish") {
      std::vector<RankId> held;
      for (const auto& [rank, report] : ranks_) held.push_back(report.process.rank);
      end(held);
      return held.size();
    } else if (word == "vault") {
      fill_vaults(number);
    } else if (word == "flood") {
      return flood(number, valid);
    } else if (word == "old") {
      return knock(number);
    } else if (word.rfind("post-", 0) == 0) {
      has_post_ = true;
      return posts_.attack(word.substr(5));
    } else {
      return 0;
    }
    return static_cast<std::uint64_t>(number);
  }

  // All that a worker says, each text and each list of it longer than it may be. Answers how many there were.
  std::uint64_t stretch(bool control) {
    std::uint64_t sent = 0;
    const auto say_all = [&](ReconnectingClient& client, auto message) {
      constexpr std::size_t kBytes = 300'000;
      constexpr std::size_t kEntries = 70'000;
      Stretcher none(kBytes, 0, 0);
      none.visit(message);
      for (std::size_t which = 0; which < none.count(); ++which) {
        auto stretched = message;
        Stretcher(which, kBytes, kEntries).visit(stretched);
        const std::string payload = encode_payload(stretched);
        if (payload.size() > limits::kControlPayloadBytes) continue;  // "oversize"
        repeat(1, client, [&] { return frames_of(number_of<decltype(message)>(), payload, job_); });
        ++sent;
      }
    };
    if (control) {
      say_all(*control_, hello(bootstrap_.host));
      say_all(*control_, next_beat());
      say_all(*control_, Reserved{});
    } else {
      say_all(*bulk_, Output{});
      say_all(*bulk_, OutputUnkept{});
      say_all(*bulk_, Stacks{});
    }
    return sent;
  }

  // All that a worker says but that it leaves, of its ranks and of itself: each number, word and time the largest or
  // the smallest that there is. Answers how many there were.
  std::uint64_t exaggerate() {
    std::uint64_t sent = 0;
    const auto say_all = [&](ReconnectingClient& client, auto make) {
      Exaggerator none(SIZE_MAX, true);
      auto message = make();
      none.visit(message);
      for (std::size_t which = 0; which < none.count(); ++which) {
        for (const bool largest : {true, false}) {
          message = make();
          Exaggerator(which, largest).visit(message);
          repeat(1, client, [&] { return frames_of(number_of<decltype(message)>(), encode_payload(message), job_); });
          ++sent;
        }
      }
    };
    const auto output = [] { return Output{.bytes = "a line\n"}; };
    say_all(*control_, [this] { return next_beat(); });
    say_all(*control_, [this] { return hello(bootstrap_.host); });
    say_all(*control_, [] { return Reserved{}; });
    say_all(*bulk_, output);
    say_all(*bulk_, [&] { return OutputUnkept{output()}; });
    say_all(*bulk_, [] { return OutputGone{}; });
    say_all(*bulk_, [] { return Stacks{}; });
    return sent;
  }

  // Offers each vault so many checkpoints of a megabyte, of the first rank of all, which it does not have.
  void fill_vaults(int offers) {
    const auto turn = [this] { loop_.turn(boot_now() + Duration::milliseconds(5)); };
    has_vault_ = true;
    while (vaults_.peers.empty() || vaults_.gangs.empty()) turn();
    for (const PeerAddress& peer : vaults_.peers) {
      const auto client = must(ReconnectingClient::start(
          *context_, loop_, dial(text(peer.address, ':', peer.port), peer.public_key, peer.address), keys_, 3,
          {.on_message = [](std::vector<ZmqFrame>&&) {},
           .on_connected = [] {},
           .on_disconnected = [] {},
           .on_refused = [](const Error&) {}}));
      while (!client->connected()) turn();
      std::uint64_t step = 0;
      repeat(offers, *client, [&] {
        const VaultOffer offer{
            .key = {.rank = {}, .generation = vaults_.gangs.front().generation, .step = 1'000 + step++},
            .bytes = 1U << 20U,
            .digest = std::string(64, 'f')};
        return frames_of(number_of<VaultOffer>(), encode_payload(offer), job_);
      });
      for (const Instant until = boot_now() + Duration::milliseconds(200); boot_now() < until;) turn();
    }
  }

  // For so many seconds, as fast as it can. Answers how many were sent.
  std::uint64_t flood(int seconds, const std::function<std::vector<ZmqFrame>()>& make) {
    const Instant until = boot_now() + Duration::seconds(seconds);
    std::uint64_t sent = 0;
    while (boot_now() < until) {
      for (int i = 0; i < 1'000; ++i) {
        auto frames = make();
        if (!control_->send(frames).ok()) break;
        ++sent;
      }
      loop_.turn(boot_now());
    }
    return sent;
  }

  // Leaves its own secret key for the next job's rogue, or tries the one that a rogue of an earlier job left: 1 let in,
  // 2 refused.
  std::uint64_t knock(int with_old_key) {
    const std::string file = folder_ + "/secret";
    if (with_old_key == 0) {
      std::ofstream(file, std::ios::binary) << keys_.secret_key.bytes();
      return 0;
    }
    std::ifstream kept(file, std::ios::binary);
    const std::string secret((std::istreambuf_iterator<char>(kept)), {});
    const CurveKeyPair old = must(curve_key_pair_of(must(CurveSecretKey::from_bytes(secret))));
    const auto options = dial(bootstrap_.control_endpoint, bootstrap_.server_public_key);
    const auto link = must(ClientLink::connect(*context_, options, old));
    for (;;) {
      const auto event = link->next_event();
      if (event == ClientEvent::kConnected) return 1;
      if (event == ClientEvent::kRefused) return 2;
      loop_.turn(boot_now() + Duration::milliseconds(5));
    }
  }

  const JobUuid job_;
  const Bootstrap bootstrap_;
  const std::string folder_;
  const CurveKeyPair keys_;
  std::unique_ptr<EventLoop> events_;
  ZmqLoop loop_;
  std::unique_ptr<ZmqContext> context_;
  RoguePosts posts_;
  std::unique_ptr<ReconnectingClient> control_;
  std::unique_ptr<ReconnectingClient> bulk_;
  std::uint64_t seq_ = 0;
  std::map<RankId, RankReport> ranks_;
  bool has_vault_ = false;
  bool has_post_ = false;
  VaultTable vaults_;
  std::string orders_;
};

}  // namespace
}  // namespace monarch

int main(int argc, char** argv) {
  // A keeper's words are `--job UUID --host NAME`; others are of a guard or a daemon.
  if (argc > 1 && std::string_view(argv[1]) != "--job") monarch::become_real(argv);
  monarch::Order order = monarch::read_order();
  if (order.bootstrap.host_name != monarch::variable("ROGUE_HOST")) {
    monarch::put_back(order.bytes);
    monarch::become_real(argv);
  }
  return monarch::Rogue(std::move(order)).run();
}
