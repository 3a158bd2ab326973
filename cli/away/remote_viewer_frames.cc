#include <csignal>

#include "cli/away/remote_viewer.h"
#include "cli/term/terminal_facts.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kLastWord = Duration::seconds(1);  // for the other half to hear that all has come
constexpr int kPatient = 3;                           // signals that an answering machine may leave unanswered

}  // namespace

void RemoteViewer::say(const std::string& words) {
  // What stands in the last line of a terminal is the other half's, and is made anew by it.
  screen_.forget_what_was_typed();
  if (!screen_.terminal().quiet) screen_.say(text("monarch: ", words, "\n"));
}

Status RemoteViewer::on_frame(const ViewerFrame& frame) {
  heard_at_ = loop_.now();
  if (state_ == State::kGreeting) return on_welcome(frame);
  if (state_ != State::kShowing) return {};  // all is known, or nobody listens
  say_heard();
  if (is_counted(frame.kind)) {
    ++taken_;
    take_soon();
  }
  switch (frame.kind) {
    case ViewerFrameKind::kOut:
    case ViewerFrameKind::kErr: show(frame.kind, frame.payload); return {};
    case ViewerFrameKind::kFile: {
      MONARCH_ASSIGN(const ViewerFile file, decode_file(frame.payload));
      return files_.begin(file);
    }
    case ViewerFrameKind::kFileBytes: return files_.append(frame.payload);
    case ViewerFrameKind::kEnd: {
      MONARCH_ASSIGN(const ViewerEnd end, decode_end(frame.payload));
      MONARCH_TRY(files_.finish());
      on_end(end);
      return {};
    }
    case ViewerFrameKind::kTaken: {
      MONARCH_ASSIGN(const auto count, decode_numbers(frame.payload, 1));
      return outbox_.taken(count[0]);
    }
    case ViewerFrameKind::kPong: return {};
    case ViewerFrameKind::kOrder:
    case ViewerFrameKind::kSignal:
    case ViewerFrameKind::kWindow:
    case ViewerFrameKind::kClosed:
    case ViewerFrameKind::kPing:
    case ViewerFrameKind::kWelcome:
    case ViewerFrameKind::kRefused: break;
  }
  return Error{ErrorCode::kInvalid, "a frame out of its turn"};
}

void RemoteViewer::say_heard() {
  if (!said_silent_) return;
  said_silent_ = false;
  say(text(options_.host, " answers again"));
}

// Its time was over before we came back, as that of a laptop which was closed: another goes on from now.
void RemoteViewer::begin_again() {
  const std::string& job = options_.order.job;
  say(text("the viewer on ", options_.host,
           " has ended meanwhile, and another goes on; what was missed is in `monarch logs ", job,
           "` and `monarch events ", job, "`"));
  token_.clear();
  taken_ = 0;
  options_.order.words = options_.again;
  outbox_.renumber();
  state_ = State::kResting;
  loop_.defer([this] {
    link_.reset();
    open();
  });
}

Status RemoteViewer::on_welcome(const ViewerFrame& frame) {
  if (frame.kind == ViewerFrameKind::kRefused) {
    const std::string why = printable(std::string_view(frame.payload).substr(0, 1024));
    const bool again = !token_.empty();
    if (again && !options_.again.empty()) {
      begin_again();
      return {};
    }
    give_up(again ? text(options_.host, ": ", why, "; ", options_.order.job, " goes on there")
                  : text(options_.host, ": ", why),
            again ? text("monarch attach ", options_.order.job) : "", again ? kExitUnreachable : kExitInternal);
    return {};
  }
  if (frame.kind != ViewerFrameKind::kWelcome) return Error{ErrorCode::kInvalid, "a frame before the welcome"};
  MONARCH_ASSIGN(const ViewerWelcome welcome, decode_welcome(frame.payload));
  MONARCH_TRY(outbox_.taken(welcome.heard));
  token_ = welcome.token;
  state_ = State::kShowing;
  lost_at_ = Instant::never();
  say_heard();
  outbox_.hold(false);
  link_->flush();
  return {};
}

void RemoteViewer::note_closed(OutputWriter& writer, std::uint64_t stream, bool& told) {
  if (writer.error() == 0 || told) return;
  told = true;
  outbox_.put(ViewerFrameKind::kClosed, encode_numbers({stream}));
  link_->flush();
}

void RemoteViewer::show(ViewerFrameKind stream, std::string_view bytes) {
  impatience_ = 0;
  const bool out = stream == ViewerFrameKind::kOut;
  OutputWriter& writer = out ? screen_.out() : screen_.err();
  const bool terminal = out ? screen_.terminal().out_is_terminal : screen_.terminal().err_is_terminal;
  terminal ? writer.write((out ? out_filter_ : err_filter_).pass(bytes)) : writer.write(bytes);
  note_closed(writer, out ? 1 : 2, out ? out_closed_ : err_closed_);
  if (!screen_.full() || paused_) return;
  paused_ = true;
  link_->pause();
}

// Once for all that came in a turn.
void RemoteViewer::take_soon() {
  if (take_is_due_) return;
  take_is_due_ = true;
  loop_.defer([this] {
    take_is_due_ = false;
    if (link_ == nullptr) return;
    outbox_.put(ViewerFrameKind::kTaken, encode_numbers({taken_}));
    link_->flush();
  });
}

void RemoteViewer::on_end(const ViewerEnd& end) {
  end_.job = end.job;
  end_.exit_code = end.signal > 0 ? kExitSignalBase + end.signal : end.exit_code;
  state_ = State::kEnding;
  screen_.out().flush();
  screen_.err().flush();
  // The other half leaves when it hears that all has come, and that ends the connection; one that lingers for nobody
  // need not be waited for.
  if (options_.order.lingers == 0) {
    if (screen_.written()) loop_.defer([this] { loop_.defer([this] { loop_.stop(); }); });
    return;
  }
  loop_.at(loop_.now() + kLastWord, [this] {
    if (screen_.written()) loop_.stop();
  });
}

void RemoteViewer::on_signals() {
  while (const auto signal = signals_.next()) on_signal(signal->number);
}

void RemoteViewer::on_signal(int number) {
  if (number == SIGWINCH) {
    const TerminalFacts now = TerminalFacts::of_this_process();
    outbox_.put(ViewerFrameKind::kWindow, encode_numbers({now.out.columns, now.err.columns}));
    if (link_ != nullptr) link_->flush();
    return;
  }
  if (state_ == State::kEnding) return loop_.stop();  // only the writing is left
  const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
  const bool answers = state_ == State::kShowing && loop_.now() < heard_at_ + options_.says_so;
  const std::string& job = options_.order.job;
  if (ends && (!answers || impatience_ >= kPatient)) {
    if (options_.kind == ViewerKind::kWatcher || impatience_ > 0) {
      say(text("leaving; ", options_.host, " does not answer, and ", job, " goes on there: monarch attach ", job));
      return leave(kExitSignalBase + number);
    }
    say(text(options_.host, " does not answer: ", job, " is stopped when it does; Ctrl-C again leaves, and ", job,
             " goes on"));
  }
  impatience_ += ends ? 1 : 0;
  outbox_.put(ViewerFrameKind::kSignal, encode_numbers({static_cast<std::uint64_t>(number)}));
  if (link_ != nullptr) link_->flush();
}

}  // namespace monarch
