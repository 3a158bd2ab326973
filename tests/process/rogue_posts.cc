#include "tests/process/rogue_posts.h"

#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "tests/transport/wire/stretched.h"
#include "transport/base/clock.h"
#include "transport/base/machine.h"
#include "transport/tensor/core/hello.h"
#include "transport/tensor/link_socket.h"
#include "transport/tensor/stream_link.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/host_socket.h"

namespace monarch {

namespace {

constexpr std::size_t kPostMessage = 64U << 20U;
constexpr std::uint64_t kOften = 200;
constexpr Duration kPatience = Duration::seconds(30);
constexpr int kWordPatience = 2'000;  // ms: for the other end of a link to say something, or to end it

std::uint64_t most() { return std::numeric_limits<std::uint64_t>::max(); }

// A link to a publisher, as somebody who has its card.
class ThiefsLink {
 public:
  ThiefsLink(const tensor::Card& card, const tensor::LinkRank& owner, tensor::LinkPurpose purpose,
             const tensor::LinkRank& claims) {
    auto socket = connect_to_host(card.address, card.port);
    if (!socket.ok() || !writable(socket->get())) return;
    link_ = tensor::StreamLink::make(std::move(*socket)).value();
    const std::string secret(reinterpret_cast<const char*>(card.secret.data()), card.secret.size());
    tensor::HelloAsk ask;
    ask.reader = claims;
    ask.owner = owner;
    ask.purpose = purpose;
    ask.publication = "model";
    ask.nonce.data = random_bytes(tensor::kNonceBytes);
    say({.kind = tensor::FrameKind::kHello}, codec::encode(ask));
    const auto heard = hear();
    tensor::HelloAnswer answer;
    codec::DecodeError error;
    if (!heard || !codec::decode(heard->behind, answer, error)) return;
    auto as_it_should = tensor::answer_hello(ask, owner, secret, answer.nonce.data);
    if (!as_it_should.ok()) return;
    say({.kind = tensor::FrameKind::kHello}, codec::encode(tensor::prove_hello(ask, *as_it_should, secret).value()));
  }

  void say(const tensor::LinkFrame& frame, std::string behind = {}) {
    if (!link_) return;
    if (!link_->send(frame, std::move(behind)).ok() || !link_->flush().ok()) link_.reset();
  }
  std::optional<tensor::StreamLink::Received> hear() {
    while (link_) {
      auto received = link_->receive(kPostMessage);
      if (!received.ok()) return std::nullopt;
      if (*received) return std::move(*received);
      pollfd waiting{link_->descriptor(), POLLIN, 0};
      if (::poll(&waiting, 1, kWordPatience) != 1) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static bool writable(int fd) {
    pollfd waiting{fd, POLLOUT, 0};
    return ::poll(&waiting, 1, kWordPatience) == 1;
  }

  std::unique_ptr<tensor::StreamLink> link_;
};

}  // namespace

RoguePosts::RoguePosts(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys, const JobUuid& job, HostId self)
    : context_(context), loop_(loop), keys_(keys), job_(job), self_(self) {}

std::uint64_t RoguePosts::attack(const std::string& name) {
  static const std::map<std::string, std::uint64_t (RoguePosts::*)(Line&)> attacks = {
      {"stretch", &RoguePosts::stretch}, {"exaggerate", &RoguePosts::exaggerate}, {"forge", &RoguePosts::forge},
      {"repeat", &RoguePosts::repeat},   {"promise", &RoguePosts::promise},       {"thief", &RoguePosts::steal}};
  const auto found = attacks.find(name);
  if (found == attacks.end()) return 0;
  open_all();
  std::uint64_t sent = 0;
  for (auto& [host, line] : lines_) sent += (this->*found->second)(line);
  for (const Instant until = boot_now() + Duration::milliseconds(200); boot_now() < until;) turn();
  return sent;
}

void RoguePosts::turn() { loop_.turn(boot_now() + Duration::milliseconds(2)); }

// ---- Lines.

// Each attack is another start of this host's post: what the one before did to its lines is over.
void RoguePosts::open_all() {
  lines_.clear();
  ++starts_;
  std::size_t ours = 0;
  for (const Instant until = boot_now() + kPatience; lines_.empty() && boot_now() < until; turn()) {
    for (const RosterHost& host : roster_.hosts) {
      if (host.peer.host == self_) ++ours;
      if (host.peer.host != self_ && host.peer.port > 1) lines_[host.peer.host].peer = host.peer;
    }
  }
  if (ours == 0 || lines_.empty()) std::exit(7);
  for (auto& [host, line] : lines_) open(line);
}

void RoguePosts::open(Line& line) {
  ClientOptions options;
  options.address = line.peer.address;
  options.port = line.peer.port;
  options.server_key = CurvePublicKey::parse(line.peer.public_key).value();
  options.link.message_bytes = kPostMessage;
  line.ends = {.root = self_, .root_start = {.worker = 1, .number = starts_}, .target_start = {}};
  line.client =
      ReconnectingClient::start(context_, loop_, options, keys_, 4,
                                {.on_message = [this, &line](std::vector<ZmqFrame>&& frames) { hear(line, frames); },
                                 .on_connected = [] {},
                                 .on_disconnected = [] {},
                                 .on_refused = [](const Error&) {}})
          .value();
  for (const Instant until = boot_now() + kPatience; !line.client->connected() && boot_now() < until;) turn();
  say(line, LineHello{.ends = line.ends, .target = {}, .epoch = 1});
  for (const Instant until = boot_now() + kPatience; !line.open && boot_now() < until;) turn();
  if (!line.open) std::exit(8);
}

void RoguePosts::hear(Line& line, const std::vector<ZmqFrame>& frames) {
  if (frames.size() < 2) return;
  const auto header = decode_header(frames[0].bytes());
  if (!header.ok()) return;
  if (header->type == number_of<LineAccepted>()) {
    const auto accepted = decode_payload<LineAccepted>(frames[1].bytes());
    if (!accepted.ok()) return;
    line.ends.target_start = accepted->ends.target_start;
    line.open = true;
  }
  if (header->type != number_of<LineAnswer>()) return;
  auto answer = decode_payload<LineAnswer>(frames[1].bytes());
  if (answer.ok()) line.answers.push_back(std::move(*answer));
}

template <class Message>
void RoguePosts::say(Line& line, const Message& message) {
  FrameHeader header;
  header.type = number_of<Message>();
  header.job = job_;
  for (bool sent = false; !sent; turn()) {
    std::vector<ZmqFrame> frames;
    frames.push_back(ZmqFrame::copy(encode_header(header)));
    frames.push_back(ZmqFrame::take(encode_payload(message)));
    sent = line.client->send(frames).ok();
  }
}

LineAsks RoguePosts::ask_of(Line& line, MeshId mesh, Rank rank) const {
  LineAsks asks;
  asks.ends = line.ends;
  asks.first = line.next;
  asks.mesh = mesh;
  asks.ranks = {{.rank = rank}};
  asks.target = {.actor = "tally", .endpoint = "run", .signature = "*"};
  asks.body = {.bytes = 4, .way = BodyWay::kHere, .here = {"\x91\x01  "}};
  return asks;
}

void RoguePosts::ask(Line& line, LineAsks asks) {
  asks.first = line.next;
  line.next += asks.ranks.size();
  say(line, asks);
}

// ---- Attacks.

std::uint64_t RoguePosts::stretch(Line& line) {
  std::uint64_t sent = 0;
  const auto say_all = [&](auto message) {
    constexpr std::size_t kBytes = 300'000;
    constexpr std::size_t kEntries = 70'000;
    Stretcher none(kBytes, 0, 0);
    none.visit(message);
    for (std::size_t which = 0; which < none.count(); ++which, ++sent) {
      auto stretched = message;
      Stretcher(which, kBytes, kEntries).visit(stretched);
      say(line, stretched);
    }
  };
  say_all(ask_of(line, MeshId(0), Rank(0)));
  say_all(LineAnswer{.ends = line.ends, .said = 1, .number = 1, .outcome = {}, .aside = {}});
  say_all(BodyLinkWord{});
  return sent;
}

std::uint64_t RoguePosts::exaggerate(Line& line) {
  std::uint64_t sent = 0;
  const auto say_all = [&](const auto& message) {
    Exaggerator none(SIZE_MAX, true);
    auto seen = message;
    none.visit(seen);
    for (std::size_t which = 0; which < none.count(); ++which) {
      for (const bool largest : {false, true}) {
        auto wrong = message;
        Exaggerator(which, largest).visit(wrong);
        say(line, wrong);
        ++sent;
      }
    }
  };
  say_all(BodyLinkWord{});
  say_all(LineAnswer{.ends = line.ends, .said = 1, .number = 1, .outcome = {}, .aside = {}});
  say_all(LineTakeBack{.ends = line.ends, .number = 1});
  say_all(LineHeard{.ends = line.ends, .heard = 0});
  say_all(LineResync{.ends = line.ends});
  say_all(LineOther{.ends = line.ends, .epoch = 1});
  say_all(LineAccepted{.ends = line.ends, .next = 1, .epoch = 1});
  say_all(ask_of(line, MeshId(0), Rank(0)));
  say_all(LineHello{.ends = line.ends, .target = {}, .epoch = 2});
  return sent;
}

std::vector<CallerName> RoguePosts::callers() const {
  std::vector<CallerName> names;
  for (const RosterRun& run : roster_.runs) {
    const std::string& mesh = roster_.meshes.at(run.mesh.value()).name;
    for (const std::uint64_t generation :
         {run.generation.counter, run.generation.counter + 1, std::uint64_t{0}, most()}) {
      names.push_back({.mesh = mesh, .rank = {run.mesh, run.first}, .generation = generation});
    }
  }
  for (const std::uint32_t number : {77U, std::numeric_limits<std::uint32_t>::max()}) {
    names.push_back({.mesh = "nowhere", .rank = {MeshId(number), Rank(0)}, .generation = 1});
    names.push_back({.mesh = roster_.meshes.at(0).name, .rank = {MeshId(0), Rank(number)}, .generation = 1});
    names.push_back({.mesh = "nowhere", .rank = {MeshId(0), Rank(number)}, .generation = 1});
  }
  return names;
}

std::uint64_t RoguePosts::forge(Line& line) {
  std::uint64_t sent = 0;
  for (std::uint32_t mesh = 0; mesh < roster_.meshes.size(); ++mesh) {
    for (const CallerName& caller : callers()) {
      LineAsks asks = ask_of(line, MeshId(mesh), Rank(0));
      asks.caller = caller;
      ask(line, std::move(asks));
      ++sent;
    }
  }
  return sent;
}

std::uint64_t RoguePosts::repeat(Line& line) {
  for (std::uint64_t i = 0; i < kOften; ++i) {
    LineAsks asks = ask_of(line, MeshId(0), Rank(0));
    asks.ranks.assign(kRanksOfAnAsk, {.rank = Rank(0)});
    asks.target.endpoint = std::string(kActorNameBytes, 'x');
    ask(line, std::move(asks));
  }
  return kOften;
}

std::uint64_t RoguePosts::promise(Line& line) {
  for (std::uint64_t i = 0; i < kOften; ++i) {
    LineAsks asks = ask_of(line, MeshId(0), Rank(0));
    asks.body = {.bytes = kPostMessage, .way = BodyWay::kBeside, .here = {}};
    asks.aside = AsideBody{.link = 1 + i % 3, .number = i};
    ask(line, std::move(asks));
    say(line, BodyLinkWord{.kind = BodyLinkKind::kAsk, .link = i});
  }
  return 2 * kOften;
}

// A card is given to any reader.
std::uint64_t RoguePosts::steal(Line& line) {
  std::uint64_t said = 0;
  for (std::uint32_t mesh = 0; mesh < roster_.meshes.size(); ++mesh) {
    for (const RosterRun& run : roster_.runs) {
      if (run.mesh != MeshId(mesh) || run.host != line.peer.host) continue;
      LineAsks asks = ask_of(line, run.mesh, run.first);
      asks.target = {kCardsActor, "tensors", "0"};
      asks.body = {};
      line.answers.clear();
      ask(line, std::move(asks));
      for (const Instant until = boot_now() + Duration::seconds(1); line.answers.empty() && boot_now() < until;) turn();
      const auto card = line.answers.empty() ? Result<tensor::Card>(Error{})
                                             : tensor::parse_card(line.answers[0].outcome.body.here.data);
      if (!card.ok()) continue;
      const tensor::LinkRank owner{roster_.meshes[mesh].name, run.first.value(), line.answers[0].outcome.generation};
      for (const tensor::LinkRank& claims : {owner, tensor::LinkRank{owner.mesh, owner.rank + 1, owner.generation}}) {
        ThiefsLink link(*card, owner, tensor::LinkPurpose::kPublishes, claims);
        link.say({.kind = tensor::FrameKind::kHolds, .version = {owner.generation, 1}});
        link.say({.kind = tensor::FrameKind::kEnds});
        said += 2;
      }
      const auto last = static_cast<std::uint16_t>(tensor::kLastFrameKind);
      for (std::uint16_t kind = 1; kind <= last; ++kind) {
        for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1}, most()}) {
          ThiefsLink link(*card, owner, tensor::LinkPurpose::kReads, {});
          tensor::LinkFrame frame{.kind = static_cast<tensor::FrameKind>(kind)};
          frame.flags = static_cast<std::uint16_t>(number);
          frame.slot = static_cast<std::uint16_t>(number);
          frame.version = {owner.generation, number};
          frame.offset = frame.row = frame.pitch = number;
          frame.rows = static_cast<std::uint32_t>(number);
          for (int i = 0; i < 50; ++i) link.say(frame, std::string(number == 1 ? 100 : 0, 'x'));
          ++said;
        }
      }
    }
  }
  return said;
}

}  // namespace monarch
