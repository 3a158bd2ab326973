#include "cli/away/remote_viewer.h"

#include <algorithm>
#include <utility>

#include "cli/args/say.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kTick = Duration::milliseconds(500);
constexpr Duration kStopped = Duration::seconds(3);  // between two ticks: it was us who did not look
constexpr Duration kFirstWait = Duration::milliseconds(300);
constexpr Duration kLongestWait = Duration::seconds(5);

}  // namespace

Result<std::unique_ptr<RemoteViewer>> RemoteViewer::create(EventLoop& loop, ViewerDoor& door, const Terminal& terminal,
                                                           SignalFd& signals, RemoteViewerOptions options) {
  std::unique_ptr<RemoteViewer> viewer(new RemoteViewer(loop, door, terminal, signals, std::move(options)));
  RemoteViewer* self = viewer.get();
  MONARCH_ASSIGN(const WatchId watch,
                 loop.watch(signals.descriptor(), Interest::kRead, [self](Readiness) { self->on_signals(); }));
  (void)watch;  // for as long as the loop lives
  return viewer;
}

RemoteViewer::RemoteViewer(EventLoop& loop, ViewerDoor& door, const Terminal& terminal, SignalFd& signals,
                           RemoteViewerOptions options)
    : loop_(loop),
      door_(door),
      signals_(signals),
      options_(std::move(options)),
      screen_(loop, terminal),
      files_(options_.junit, options_.artifacts),
      heard_at_(loop.now()),
      ticked_at_(loop.now()),
      wait_(kFirstWait) {}

RemoteViewer::~RemoteViewer() = default;

RemoteViewerEnd RemoteViewer::follow() {
  screen_.on_drained([this] {
    if (state_ == State::kEnding && screen_.written()) return loop_.stop();
    if (!paused_ || screen_.full()) return;
    paused_ = false;
    if (link_ != nullptr) link_->resume();
  });
  open();
  on_tick();
  loop_.run();
  link_.reset();
  door_.close();
  note_lost_output(screen_.terminal(), screen_.out().error());
  note_lost_errors(screen_.terminal(), screen_.err().error());
  return end_;
}

void RemoteViewer::open() {
  state_ = State::kOpening;
  door_.open({.on_open = [this](UniqueFd stream) { on_open(std::move(stream)); },
              .on_failed = [this](const DoorFailure& failure) { on_failed(failure); }});
}

void RemoteViewer::on_open(UniqueFd stream) {
  if (state_ != State::kOpening) return;  // somebody was impatient meanwhile
  auto link = ViewerLink::open(loop_, std::move(stream), UniqueFd(), outbox_,
                               {.on_frame = [this](const ViewerFrame& frame) { return on_frame(frame); },
                                .on_lost = [this](const Error& why) { on_lost(why); }});
  if (!link.ok()) return give_up(link.error().message, "", kExitInternal);
  link_ = std::move(*link);
  state_ = State::kGreeting;
  paused_ = false;
  heard_at_ = loop_.now();
  // Signals and the like wait until the other side has said where it stands.
  outbox_.hold(true);
  const ViewerOrder again{.token = token_, .taken = taken_};
  outbox_.put(ViewerFrameKind::kOrder, encode_order(token_.empty() ? options_.order : again));
  link_->flush();
}

void RemoteViewer::on_failed(const DoorFailure& failure) {
  if (state_ != State::kOpening) return;
  if (failure.worth_retrying && lost_at_ != Instant::never()) return rest(failure.message);
  give_up(failure.message, failure.help, failure.exit_code);
}

// By the link, which goes when the turn is over.
void RemoteViewer::on_lost(const Error& why) {
  loop_.defer([gone = std::shared_ptr<ViewerLink>(std::move(link_))] {});
  if (state_ == State::kResting) return;  // it is known already
  if (state_ == State::kEnding) return screen_.written() ? loop_.stop() : void();
  const std::string words = door_.last_words();
  const std::string reason = words.empty() ? why.message : words;
  // Who says what none of ours says is not asked again.
  if (why.code != ErrorCode::kGone && why.code != ErrorCode::kTimeout) {
    return give_up(text(options_.host, " said what cannot be taken: ", why.message), "", kExitInternal);
  }
  if (lost_at_ == Instant::never()) lost_at_ = loop_.now();
  // Nothing was shown yet of a viewer that cannot be found again: it is as if it had not been asked.
  if (token_.empty()) {
    return give_up(text("lost ", options_.host, " (", printable(reason), ")"), text("ssh ", options_.host),
                   kExitUnreachable);
  }
  rest(reason);
}

void RemoteViewer::rest(const std::string& why) {
  door_.close();
  if (loop_.now() >= lost_at_ + options_.tries) {
    return give_up(
        text(options_.host, " does not answer; ", options_.order.job, " goes on there (", printable(why), ")"),
        text("monarch attach ", options_.order.job), kExitUnreachable);
  }
  state_ = State::kResting;
  loop_.at(loop_.now() + wait_, [this] {
    if (state_ == State::kResting) open();
  });
  wait_ = std::min(wait_ * 2, kLongestWait);
}

void RemoteViewer::give_up(const std::string& message, const std::string& help, int exit_code) {
  screen_.forget_what_was_typed();
  screen_.say(complaint_text({.id = "E0910", .message = message, .help = help}, screen_.terminal().err_colour));
  leave(exit_code);
}

void RemoteViewer::leave(int exit_code) {
  end_.exit_code = exit_code;
  state_ = State::kEnding;
  screen_.out().flush();
  screen_.err().flush();
  if (screen_.written()) loop_.stop();
}

void RemoteViewer::say_silent() {
  if (said_silent_ || options_.order.lingers == 0) return;
  said_silent_ = true;
  say(text("lost ", options_.host, ", trying again for ", to_text(options_.tries), "; ", options_.order.job,
           " goes on there"));
}

void RemoteViewer::on_tick() {
  const Instant now = loop_.now();
  // A viewer that was stopped has heard nothing because it did not listen.
  if (now > ticked_at_ + kStopped || paused_) heard_at_ = now;
  ticked_at_ = now;
  const bool asks = state_ == State::kShowing || state_ == State::kGreeting;
  if (asks && now > heard_at_ + options_.says_so) say_silent();
  if (lost_at_ != Instant::never() && now > lost_at_ + options_.says_so && state_ != State::kEnding) say_silent();
  if (state_ == State::kShowing && link_ != nullptr && !paused_) {
    outbox_.put(ViewerFrameKind::kPing);
    link_->flush();
  }
  if (asks && now > heard_at_ + options_.silence) {
    link_.reset();
    on_lost({ErrorCode::kTimeout, text("nothing was heard for ", to_text(options_.silence))});
  }
  loop_.at(now + kTick, [this] { on_tick(); });
}

}  // namespace monarch
