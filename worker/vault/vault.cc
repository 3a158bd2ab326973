#include "worker/vault/vault.h"

#include <random>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/vault.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/sealed_memory.h"
#include "worker/core/host_places.h"
#include "worker/vault/vault_frames.h"

namespace monarch::vault {

namespace {

constexpr std::size_t kOverhead = 64U << 10U;  // of a message beside a piece's bytes

LinkOptions bulk_options() {
  LinkOptions link;
  link.high_water_mark = limits::kBulkHighWaterMark;
  link.message_bytes = kVaultPieceBytes + kOverhead;
  return link;
}

}  // namespace

Result<std::unique_ptr<Vault>> Vault::start(VaultSetup setup, SignalFd& signals) {
  MONARCH_ASSIGN(CurveSecretKey secret, CurveSecretKey::from_bytes(setup.secret_key));
  MONARCH_ASSIGN(CurveKeyPair keys, curve_key_pair_of(std::move(secret)));
  std::unique_ptr<Vault> vault(new Vault(std::move(setup), std::move(keys)));
  MONARCH_TRY(vault->open(signals));
  return vault;
}

Vault::Vault(VaultSetup setup, CurveKeyPair keys)
    : setup_(std::move(setup)),
      keys_(std::move(keys)),
      core_({.host = setup_.host, .host_name = setup_.host_name, .memory = setup_.memory}),
      memory_(setup_.memory) {}

Status Vault::open(SignalFd& signals) {
  MONARCH_ASSIGN(loop_, EventLoop::create());
  loop_->read_clock();
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 1}));
  zmq_loop_ = std::make_unique<ZmqLoop>(*loop_);
  MONARCH_ASSIGN([[maybe_unused]] const WatchId watched,
                 loop_->watch(signals.descriptor(), Interest::kRead, [this](Readiness) { loop_->stop(); }));
  MONARCH_TRY(open_links());
  return open_doors();
}

Status Vault::open_links() {
  std::random_device random;
  PeerLinks::Handlers heard{
      .on_message = [this](HostId from, PeerVia via, const FrameHeader& header,
                           std::vector<ZmqFrame>&& frames) { return on_peer(from, via, header, frames); },
      .on_up = [this](HostId host) { feed(vault_event::PeerUp{host}); },
      // What is missing is asked for again, by and by.
      .on_down = [this](HostId host) { pieces_->drop(host, PeerVia::kOurs); },
      .on_scarce =
          [this](bool scarce) {
            if (pieces_) pieces_->rest(scarce);
          }};
  MONARCH_ASSIGN(links_, PeerLinks::open(*context_, *zmq_loop_, keys_,
                                         {.kind = "vault",
                                          .job = setup_.job,
                                          .address = setup_.address,
                                          .ports = {setup_.first_port, setup_.last_port},
                                          .link = bulk_options(),
                                          .seed = random()},
                                         std::move(heard)));
  PieceLinks::Handlers pieces{
      .on_piece =
          [this](HostId from, PeerVia via, std::uint64_t number) {
            feed(vault_event::PieceCame{from, via, number});
          },
      .on_lost = [this](HostId host, PeerVia via) { bodies_lost(host, via); },
      .on_failed = [this](BlobId blob, const Status& why) { check(blob, why); },
      .say = [this](HostId host, PeerVia via, const BodyLinkWord& word) { say_of_bodies(host, via, word); },
      .address_of = [this](HostId host) { return address_of(host); }};
  pieces_ = std::make_unique<PieceLinks>(
      *loop_, memory_,
      PieceLinks::Place{.address = setup_.address, .first_port = setup_.first_port, .last_port = setup_.last_port},
      std::move(pieces));
  return {};
}

Status Vault::open_doors() {
  RankDoor::Handlers asked{
      .on_question = [this](VaultClient client, std::string_view question,
                            UniqueFd descriptor) { on_question(client, question, std::move(descriptor)); },
      .on_left =
          [this](VaultClient client) {
            handed_over_.erase(client);
            feed(vault_event::ClientLeft{client});
          },
      .make_room = [this] { return links_->make_room(); }};
  MONARCH_ASSIGN(door_, RankDoor::open(*loop_, text(setup_.directory, '/', kVaultDoor), std::move(asked)));
  DaemonDoor::Handlers daemon{.is_proof = [this](const Frame& frame) { return is_proof(frame); },
                              .on_daemon =
                                  [this] {
                                    told_.reset();
                                    report_later();
                                  },
                              .on_frame = [this](const Frame& frame) { return on_daemon(frame); }};
  MONARCH_ASSIGN(daemon_, DaemonDoor::open(*loop_, text(setup_.directory, '/', kVaultDaemonDoor), std::move(daemon)));
  return {};
}

void Vault::on_question(VaultClient client, std::string_view question, UniqueFd descriptor) {
  auto parsed = parse_vault_question(question);
  if (!parsed.ok()) return door_->answer(client, vault_error(parsed.error().message), {});
  vault_event::Asked asked{.client = client, .question = std::move(*parsed)};
  if (asked.question.kind == VaultAsks::kSave) {
    if (!descriptor.valid()) return door_->answer(client, vault_error("a save comes with one descriptor"), {});
    const auto size = sealed_memory_size(descriptor.get());
    if (!size.ok()) return door_->answer(client, vault_error(size.error().message), {});
    asked.bytes = *size;
    handed_over_[client] = std::move(descriptor);
  }
  feed(asked);
}

Status Vault::on_peer(HostId from, PeerVia via, const FrameHeader& header, const std::vector<ZmqFrame>& frames) {
  if (header.type == number_of<BodyLinkWord>()) {
    return route(header, frames.front().bytes(),
                 when<BodyLinkWord>([&](BodyLinkWord&& word) { pieces_->heard(from, via, word); }));
  }
  MONARCH_ASSIGN(VaultHeard heard, read_vault_message(header, frames));
  feed(vault_event::PeerSpoke{from, via, std::move(heard.message)}, heard.bytes);
  return {};
}

// Where it is not said pieces go beside their messages.
void Vault::say_of_bodies(HostId host, PeerVia via, const BodyLinkWord& word) {
  FrameHeader header;
  header.type = number_of<BodyLinkWord>();
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::take(encode_payload(word)));
  (void)links_->send(host, via, header, std::move(frames));
}

// Told once the present step is done with.
void Vault::bodies_lost(HostId host, PeerVia via) {
  loop_->defer([this, host, via] { feed(vault_event::BodiesLost{host, via}); });
}

std::string Vault::address_of(HostId host) const {
  for (const PeerAddress& peer : core_.peers()) {
    if (peer.host == host) return peer.address;
  }
  return {};
}

bool Vault::is_proof(const Frame& frame) const {
  bool proven = false;
  (void)route(frame.header, frame.payload,
              when<VaultSetup>([&](const VaultSetup& setup) { proven = setup.secret_key == setup_.secret_key; }));
  return proven;
}

Status Vault::on_daemon(const Frame& frame) {
  return route(frame.header, frame.payload,
               when<VaultTable>([&](VaultTable&& table) { feed(vault_event::TableCame{std::move(table)}); },
                                limits::kSeqpacketPayloadBytes));
}

void Vault::feed(const VaultEvent& event, std::string_view bytes) {
  for (const VaultAction& action : core_.step(event, loop_->now())) {
    std::visit([&](const auto& one) { perform(one, bytes); }, action);
  }
  arm_tick();
  report_later();
}

void Vault::arm_tick() {
  loop_->cancel(std::exchange(tick_timer_, 0));
  const Instant due = core_.next_due();
  if (due == Instant::never()) return;
  tick_timer_ = loop_->at(due, [this] {
    tick_timer_ = 0;
    feed(vault_event::Tick{});
  });
}

void Vault::report_later() {
  if (std::exchange(report_armed_, true)) return;
  loop_->defer([this] {
    report_armed_ = false;
    const VaultReport now{.port = links_->port(), .table = core_.table_version(), .used = core_.used()};
    if (told_ == now) return;
    if (daemon_->send(now, setup_.job)) told_ = now;
  });
}

void Vault::perform(const vault_action::Answer& action, std::string_view /*bytes*/) {
  handed_over_.erase(action.client);
  UniqueFd descriptor;
  std::string json = action.json;
  if (action.blob) {
    auto copy = memory_.copy_of(*action.blob);
    if (copy.ok()) {
      descriptor = std::move(*copy);
    } else {
      json = vault_error(copy.error().message);
    }
  }
  door_->answer(action.client, json, std::move(descriptor));
}

void Vault::perform(const vault_action::Adopt& action, std::string_view /*bytes*/) {
  memory_.adopt(action.blob, std::move(handed_over_[action.client]), action.bytes);
  handed_over_.erase(action.client);
}

void Vault::perform(const vault_action::Create& action, std::string_view /*bytes*/) {
  check(action.blob, memory_.create(action.blob, action.bytes));
}

void Vault::perform(const vault_action::Write& action, std::string_view bytes) {
  check(action.blob, memory_.write(action.blob, action.offset, bytes));
}

void Vault::perform(const vault_action::Close& action, std::string_view /*bytes*/) {
  pieces_->forget(action.blob);
  memory_.close(action.blob);
}

// Told once the present step is done with.
void Vault::check(BlobId blob, const Status& done) {
  if (done.ok()) return;
  log_warn(done.error().message);
  loop_->defer([this, blob, why = done.error().message] { feed(vault_event::BlobFailed{blob, why}); });
}

void Vault::perform(const vault_action::Drop& action, std::string_view /*bytes*/) {
  pieces_->forget(action.blob);
  memory_.drop(action.blob);
}

void Vault::perform(const vault_action::Dial& action, std::string_view /*bytes*/) { links_->dial(action.host); }

void Vault::perform(const vault_action::Send& action, std::string_view /*bytes*/) {
  std::string bytes;
  if (const auto* ask = std::get_if<VaultAsk>(&action.message); ask != nullptr && action.blob) {
    pieces_->asked(action.to, action.via, *action.blob, *ask);
  }
  if (const auto* piece = std::get_if<VaultPiece>(&action.message); piece != nullptr && action.blob) {
    if (pieces_->send(action.to, action.via, action.number, *action.blob, *piece)) return;
    auto read = memory_.read(*action.blob, piece->offset, piece->length);
    if (!read.ok()) return log_warn(read.error().message);  // it is asked for again, and then given up
    bytes = std::move(*read);
  }
  VaultFrames written = write_vault_message(action.message, std::move(bytes));
  (void)links_->send(action.to, action.via, written.header, std::move(written.frames));  // lost: said or asked again
}

void Vault::perform(const vault_action::PeersChanged& /*action*/, std::string_view /*bytes*/) {
  links_->set_peers(core_.peers());
}

}  // namespace monarch::vault
