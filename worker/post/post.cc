#include "worker/post/post.h"

#include <random>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/log.h"
#include "transport/base/report_limits.h"
#include "transport/base/text.h"
#include "transport/process/cpu_affinity.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "worker/core/host_places.h"
#include "worker/post/post_frames.h"

namespace monarch::post {

namespace {

constexpr std::size_t kOverhead = 1U << 20U;  // of a message beside its body
constexpr std::size_t kUnused = 1U << 20U;    // more than may be on their way
constexpr std::size_t kProcessorsToLook = 2;  // one is for those whom it waits for
constexpr Duration kResumeAfter = Duration::milliseconds(100);
constexpr Duration kCountedEvery = Duration::seconds(1);  // what a report counts; what others wait for goes at once

// A queue that is long: what is on its way is bounded by what callers may have under way, and in bytes by PeerLinks.
// What comes waits at who sent it.
LinkOptions link_options() {
  LinkOptions link;
  link.high_water_mark = 64 << 10;
  link.receive_high_water_mark = limits::kBulkHighWaterMark;
  link.message_bytes = PostLimits().far_bytes + kOverhead;
  return link;
}

}  // namespace

Result<std::unique_ptr<Post>> Post::start(PostSetup setup, SignalFd& signals) {
  MONARCH_ASSIGN(CurveSecretKey secret, CurveSecretKey::from_bytes(setup.secret_key));
  MONARCH_ASSIGN(CurveKeyPair keys, curve_key_pair_of(std::move(secret)));
  std::unique_ptr<Post> post(new Post(std::move(setup), std::move(keys)));
  MONARCH_TRY(post->open(signals));
  return post;
}

Post::Post(PostSetup setup, CurveKeyPair keys)
    : setup_(std::move(setup)),
      keys_(std::move(keys)),
      core_({.host = setup_.host,
             .host_name = setup_.host_name,
             .address = setup_.address,
             .first_port = setup_.first_port,
             .last_port = setup_.last_port,
             .start = setup_.start,
             .one_machine = setup_.one_machine,
             .limits = {}}) {}

Status Post::open(SignalFd& signals) {
  MONARCH_ASSIGN(loop_, EventLoop::create());
  loop_->read_clock();
  const auto unused = [this](BodyId body) {
    if (bodies_.is_unused(body)) feed(post_event::BodyGone{body});
  };
  MONARCH_ASSIGN(unused_, WatchedInbox<BodyId>::create(*loop_, kUnused, unused));
  bodies_.tell_unused(unused_->inbox());
  MONARCH_ASSIGN(context_, ZmqContext::create({.io_threads = 1}));
  zmq_loop_ = std::make_unique<ZmqLoop>(*loop_);
  zmq_loop_->look_before_sleep([] { return usable_cpus().size() >= kProcessorsToLook; });
  MONARCH_ASSIGN([[maybe_unused]] const WatchId watched,
                 loop_->watch(signals.descriptor(), Interest::kRead, [this](Readiness) { loop_->stop(); }));
  MONARCH_TRY(open_links());
  return open_doors();
}

Status Post::open_links() {
  std::random_device random;
  PeerLinks::Handlers heard{
      .on_message = [this](HostId from, PeerVia via, const FrameHeader& header,
                           std::vector<ZmqFrame>&& frames) { return on_peer(from, via, header, frames); },
      .on_up = [this](HostId host) { feed(post_event::PeerUp{host}); },
      .on_down =
          [this](HostId host) {
            (void)drop_awaited(host, PeerVia::kOurs);  // all of it is said again
            body_links_->drop(host, PeerVia::kOurs);
            feed(post_event::PeerDown{host});
          },
      .on_scarce =
          [this](bool scarce) {
            bodies_.be_short(scarce);
            if (body_links_) body_links_->rest(scarce);
          }};
  MONARCH_ASSIGN(links_, PeerLinks::open(*context_, *zmq_loop_, keys_,
                                         {.kind = "post",
                                          .job = setup_.job,
                                          .address = setup_.address,
                                          .ports = {setup_.first_port, setup_.last_port},
                                          .link = link_options(),
                                          .seed = random()},
                                         std::move(heard)));
  BodyLinks::Handlers bodies{
      .on_body = [this](HostId from, PeerVia via, BodyStream::Arrived&& body) { on_body(from, via, std::move(body)); },
      .on_lost = [this](HostId host, PeerVia via) { body_link_lost(host, via); },
      .say = [this](HostId host, PeerVia via, const BodyLinkWord& word) { say_of_bodies(host, via, word); },
      .address_of = [this](HostId host) { return address_of(host); }};
  body_links_ = std::make_unique<BodyLinks>(*loop_, bodies_.pool(),
                                            BodyLinks::Options{.address = setup_.address,
                                                               .first_port = setup_.first_port,
                                                               .last_port = setup_.last_port,
                                                               .most = PostLimits().far_bytes},
                                            std::move(bodies));
  return {};
}

Status Post::open_doors() {
  PostDoor::Handlers said{
      .on_frame = [this](DoorId door, const Frame& frame,
                         std::vector<UniqueFd> descriptors) { on_door(door, frame, std::move(descriptors)); },
      .on_left = [this](DoorId door) { feed(post_event::DoorLeft{door}); },
      .make_room = [this] { return links_->make_room(); }};
  MONARCH_ASSIGN(door_, PostDoor::open(*loop_, post_door(setup_.directory), std::move(said)));
  DaemonDoor::Handlers daemon{.is_proof = [this](const Frame& frame) { return is_proof(frame); },
                              .on_daemon =
                                  [this] {
                                    told_.reset();
                                    report_later(Duration::zero());
                                  },
                              .on_frame = [this](const Frame& frame) { return on_daemon(frame); }};
  MONARCH_ASSIGN(daemon_, DaemonDoor::open(*loop_, text(setup_.directory, '/', kPostDaemonDoor), std::move(daemon)));
  return {};
}

bool Post::is_proof(const Frame& frame) const {
  bool proven = false;
  (void)route(frame.header, frame.payload,
              when<PostSetup>([&](const PostSetup& setup) { proven = setup.secret_key == setup_.secret_key; }));
  return proven;
}

Status Post::on_daemon(const Frame& frame) {
  return route(frame.header, frame.payload,
               when<Roster>([&](Roster&& roster) { feed(post_event::RosterCame{std::move(roster)}); },
                            limits::kSeqpacketPayloadBytes),
               when<ClaimAnswer>([&](ClaimAnswer&& answer) { feed(post_event::WishAnswered{std::move(answer)}); }),
               when<PostRankEnded>([&](PostRankEnded&& ended) {
                 feed(post_event::RankEnded{ended.process, std::move(ended.cause)});
               }));
}

void Post::close_door(DoorId door, std::string why) {
  log_warn("a connection at the post's door is closed: ", why);
  door_->close(door, frame_of(PostClosed{std::move(why)}, {.job = setup_.job}));
}

void Post::on_door(DoorId door, const Frame& frame, std::vector<UniqueFd> descriptors) {
  auto message = read_door_message(frame.header, frame.payload);
  if (!message.ok()) return close_door(door, message.error().message);
  const Status taken = std::visit(
      [&](auto& one) -> Status {
        CallBody* const body = body_of(one);
        if (body == nullptr) return {};
        return bodies_.take(*body, descriptors.empty() ? UniqueFd() : std::move(descriptors.front()));
      },
      *message);
  if (!taken.ok()) return close_door(door, taken.error().message);
  if (std::holds_alternative<PostCall>(*message)) ++called_;
  feed(post_event::DoorSaid{door, std::move(*message)});
}

Status Post::on_peer(HostId from, PeerVia via, const FrameHeader& header, const std::vector<ZmqFrame>& frames) {
  if (header.type == number_of<BodyLinkWord>()) {
    return route(header, frames.front().bytes(),
                 when<BodyLinkWord>([&](BodyLinkWord&& word) { body_links_->heard(from, via, word); }));
  }
  MONARCH_ASSIGN(post_event::PeerMessage message, read_peer_message(header, frames.front().bytes()));
  return on_line(from, via, std::move(message), frames);
}

// Its body is beside it, or comes by a connection of its own, for which it waits, and all behind it.
Status Post::on_line(HostId from, PeerVia via, post_event::PeerMessage&& message, const std::vector<ZmqFrame>& frames) {
  std::optional<AsideBody> aside;
  MONARCH_TRY(std::visit(
      [&](auto& one) -> Status {
        if (std::optional<AsideBody>* const its = aside_of(one)) aside = *its;
        each_body(one, [](CallBody& body) { body.from = body.block = 0; });  // numbers of this process alone
        Status taken;
        each_body(one, [&](CallBody& body) {
          if (aside || !taken.ok()) return;
          taken = bodies_.take(body, frames.size() > 1 ? frames[1].bytes() : "");
        });
        // One of several is not as it says: nobody hears of the others.
        if (!taken.ok()) each_body(one, [&](const CallBody& body) { bodies_.drop(body); });
        return taken;
      },
      message));
  if (aside && !body_links_->comes_by(from, via, aside->link)) {
    // It was said before its connection ended: it is said again.
    std::visit([&](const auto& one) { resume_later(from, via, one.ends); }, message);
    return {};
  }
  std::uint64_t bytes = 0;
  for (const ZmqFrame& frame : frames) bytes += frame.size();
  awaited_[{from, via}].said(std::move(message), aside ? std::optional(aside->number) : std::nullopt, bytes);
  go_on(from, via);
  return {};
}

void Post::on_body(HostId from, PeerVia via, BodyStream::Arrived&& body) {
  auto& awaited = awaited_[{from, via}];
  const std::uint64_t number = body.number;
  const std::uint64_t bytes = body.bytes;
  awaited.arrived(number, std::move(body), bytes);
  go_on(from, via);
}

// Where it is not said bodies go the slower way.
void Post::say_of_bodies(HostId host, PeerVia via, const BodyLinkWord& word) {
  FrameHeader header;
  header.type = number_of<BodyLinkWord>();
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::take(encode_payload(word)));
  (void)links_->send(host, via, header, std::move(frames));
}

std::string Post::address_of(HostId host) const {
  for (const PeerAddress& peer : core_.peers()) {
    if (peer.host == host) return peer.address;
  }
  return {};
}

void Post::go_on(HostId from, PeerVia via) {
  const std::pair way{from, via};
  for (auto found = awaited_.find(way); found != awaited_.end(); found = awaited_.find(way)) {
    auto next = found->second.take();
    if (!next) {
      if (found->second.is_empty()) {
        awaited_.erase(found);
      } else if (found->second.is_too_much()) {
        log_warn("the post of host ", from.value(),
                 ": too much waits for bodies that do not come: they come the slower way");
        body_links_->drop(from, via);
      }
      return;
    }
    const Status taken = std::visit(
        [&](auto& one) -> Status {
          if (std::optional<AsideBody>* const its = aside_of(one)) its->reset();
          return next->body ? bodies_.take(*body_of(one), std::move(*next->body)) : Status();
        },
        next->message);
    if (!taken.ok()) {
      log_warn("the post of host ", from.value(), ": ", taken.error().message);
      std::visit([&](const auto& one) { resume_later(from, via, one.ends); }, next->message);
      continue;
    }
    feed(post_event::PeerSaid{from, std::move(next->message)});
  }
}

void Post::body_link_lost(HostId host, PeerVia via) {
  if (const auto first = drop_awaited(host, via)) resume_later(host, via, *first);
}

// The core has not heard of these messages: nobody else holds the bodies that came beside them.
std::optional<LineEnds> Post::drop_awaited(HostId host, PeerVia via) {
  const auto found = awaited_.find({host, via});
  if (found == awaited_.end()) return std::nullopt;
  std::optional<LineEnds> first;
  for (post_event::PeerMessage& message : found->second.lost()) {
    std::visit(
        [&](auto& one) {
          if (!first) first = one.ends;
          each_body(one, [this](const CallBody& body) { bodies_.drop(body); });
        },
        message);
  }
  awaited_.erase(found);
  return first;
}

void Post::perform_all(PostActions&& actions) {
  for (PostAction& action : actions) {
    std::visit([&](auto& one) { perform(std::move(one)); }, action);
  }
}

void Post::feed(const PostEvent& event) {
  perform_all(core_.step(event, loop_->now()));
  if (core_.has_answers() && !std::exchange(turn_ends_, true)) {
    loop_->defer([this] {
      turn_ends_ = false;
      perform_all(core_.end_turn());
      tell_gone();
    });
  }
  tell_gone();
  arm_tick();
  const Roster& roster = core_.roster().roster();
  const bool newer = told_ && (told_->roster_term != roster.term || told_->roster_number != roster.number);
  report_later(newer || core_.wishes().take_changed() ? Duration::zero() : kCountedEvery);
}

void Post::tell_gone() {
  for (const BodyId body : std::exchange(gone_, {})) perform_all(core_.step(post_event::BodyGone{body}, loop_->now()));
}

void Post::arm_tick() {
  const Instant due = core_.next_due();
  if (due == tick_due_) return;
  loop_->cancel(std::exchange(tick_timer_, 0));
  tick_due_ = due;
  if (due == Instant::never()) return;
  tick_timer_ = loop_->at(due, [this] {
    tick_timer_ = 0;
    tick_due_ = Instant::never();
    feed(post_event::Tick{});
  });
}

void Post::report_later(Duration pause) {
  const Instant due = loop_->now() + pause;
  if (report_due_ <= due) return;
  loop_->cancel(report_timer_);
  report_due_ = due;
  report_timer_ = loop_->at(due, [this] {
    report_due_ = Instant::never();
    report();
  });
}

void Post::report() {
  const Roster& roster = core_.roster().roster();
  const PostReport now{.port = links_->port(),
                       .roster_term = roster.term,
                       .roster_number = roster.number,
                       .calls = core_.calls(),
                       .doors = door_->size(),
                       .bytes = core_.body_bytes(),
                       .called = called_,
                       .start = (setup_.start.worker << 32U) + setup_.start.number,
                       .words = {words_.begin(), words_.end()},
                       .wishes = core_.wishes().reported(),
                       .owners = core_.wishes().owners()};
  if (told_ == now) return;
  if (daemon_->send(now, setup_.job)) told_ = now;
}

void Post::perform(post_action::ToDoor&& action) {
  std::visit(
      [&](auto& message) {
        LateDescriptor beside;
        each_body(message, [&](CallBody& body) {
          if (LateDescriptor its = bodies_.give(body)) beside = std::move(its);
        });
        door_->send(action.door, frame_of(message, {.job = setup_.job}), std::move(beside));
      },
      action.message);
}

void Post::perform(post_action::ToPeer&& action) {
  std::visit(
      [&](auto& message) {
        std::vector<ZmqFrame> beside;
        BodyStore::Shared aside;
        Status given;
        each_body(message, [&](CallBody& body) {
          if (given.ok()) given = give(body, action, aside_of(message), beside, aside);
        });
        if (!given.ok()) {
          log_warn("a message to another host: ", given.error().message);
          return resume_later(action.host, action.via, message.ends);
        }
        FrameHeader header;
        header.type = number_of<std::decay_t<decltype(message)>>();
        std::vector<ZmqFrame> frames;
        frames.push_back(ZmqFrame::take(encode_payload(message)));
        for (ZmqFrame& one : beside) frames.push_back(std::move(one));
        const Status sent = links_->send(action.host, action.via, header, std::move(frames));
        if (sent.ok() && aside.memory) {
          body_links_->send(action.host, action.via, aside.bytes, std::move(aside.memory));
        }
        // That a connection has ended is told, and the line is resumed.
        if (!sent.ok() && sent.error().code == ErrorCode::kBusy) resume_later(action.host, action.via, message.ends);
      },
      action.message);
}

// Large ones go by a connection of their own, where there is one; it is opened for the next.
Status Post::give(CallBody& body, const post_action::ToPeer& action, std::optional<AsideBody>* place,
                  std::vector<ZmqFrame>& beside, BodyStore::Shared& aside) {
  if (place != nullptr && body.bytes >= kBodyAsideBytes) {
    if (const auto link = body_links_->link_to(action.host, action.via)) {
      MONARCH_ASSIGN(aside, bodies_.share(body));
      if (aside.memory != nullptr) {
        body.way = BodyWay::kBeside;
        body.from = 0;
        body.block = 0;
        *place = AsideBody{*link, body_links_->next_body()};
        return {};
      }
    }
  }
  return bodies_.give(body, beside);
}

// A message found no room: its line is resumed, by a hello of ours, or by one that the root is told to say.
void Post::resume_later(HostId host, PeerVia via, const LineEnds& ends) {
  if (!resuming_.emplace(host, via).second) return;
  loop_->at(loop_->now() + kResumeAfter, [this, host, via, ends] {
    resuming_.erase({host, via});
    if (via == PeerVia::kOurs) return links_->dial(host);
    perform(post_action::ToPeer{host, via, LineResync{ends}});
  });
}

void Post::perform(post_action::Tell&& action) {
  log_info(action.text);
  if (words_.size() == kPostWords) words_.pop_front();
  words_.push_back({.number = ++last_word_, .kind = action.kind, .text = std::move(action.text)});
  if (words_.back().text.size() > limits::kExplanationBytes) words_.back().text.resize(limits::kExplanationBytes);
  report_later(Duration::zero());
}

}  // namespace monarch::post
