#include "cli/follow/rank_output.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/args/mesh_names.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kStepsPerTurn = 8;                               // then signals and events have their turn
constexpr Duration kRetryRead = Duration::milliseconds(50);    // of bytes that are not in their file yet
constexpr Duration kGiveUpAfter = Duration::seconds(2);        // they are counted as lost
constexpr Duration kLookPeriod = Duration::milliseconds(500);  // at the files, at most
constexpr std::int64_t kLookShare = 20;                        // of the time goes into looking

LinePrinterOptions printer_options(const LineOptions& lines, const Terminal& terminal, OutputStream stream) {
  const bool out = stream == OutputStream::kStdout;
  const bool on_terminal = out ? terminal.out_is_terminal : terminal.err_is_terminal;
  const bool in_log = !on_terminal && !(out && terminal.out_is_file);
  return {.style = lines.style,
          // JSON's own writer escapes what could steer a terminal.
          .for_terminal = on_terminal && lines.style != LineStyle::kJson,
          .runner = in_log ? terminal.runner : CiRunner(),
          .colour = out ? terminal.out_colour : terminal.err_colour,
          .prefix = lines.prefix,
          .fold = lines.fold,
          .only = lines.only};
}

}  // namespace

RankOutput::RankOutput(EventLoop& loop, Screen& screen, const JobSpec& spec, RankOutputOptions options)
    : loop_(loop),
      screen_(screen),
      style_(options.lines.style),
      folds_(options.lines.fold),
      job_id_(std::move(options.job_id)),
      spec_(spec),
      mesh_names_(mesh_names(spec)),
      hosts_(std::move(options.hosts)),
      out_printer_(printer_options(options.lines, screen.terminal(), OutputStream::kStdout)),
      err_printer_(printer_options(options.lines, screen.terminal(), OutputStream::kStderr)),
      follower_({.log_directory = std::move(options.log_directory),
                 .mesh_names = mesh_names_,
                 .wanted = std::move(options.wanted),
                 .with_times = options.lines.prefix.has_time()},
                *this) {
  screen_.on_drained([this] { go_on(); });
}

RankOutput::~RankOutput() {
  screen_.on_drained({});
  if (pump_timer_ != 0) loop_.cancel(pump_timer_);
  if (look_timer_ != 0) loop_.cancel(look_timer_);
  if (fold_timer_ != 0) loop_.cancel(fold_timer_);
  loop_.cancel(quiet_timer_);
}

OutputWriter& RankOutput::writer(OutputStream stream) const {
  return stream == OutputStream::kStdout || style_ == LineStyle::kJson ? screen_.out() : screen_.err();
}

const RankOutput::Known& RankOutput::known(const StreamId& stream) {
  const auto [entry, fresh] = streams_.try_emplace(stream);
  if (fresh) {
    const MeshSpec& mesh = spec_.meshes[stream.rank.mesh.value()];
    const std::uint32_t rank = stream.rank.rank.value();
    const bool known_rank = rank < mesh.size();  // a file of that name may be anybody's
    const std::uint32_t gang_size = mesh.size() / mesh.gangs();
    entry->second = {.key = streams_.size(),
                     .source = {.job = job_id_,
                                .mesh = mesh.name,
                                .rank = rank,
                                .generation = stream.generation,
                                .host = hosts_->host_of(stream.rank),
                                .stream = stream.stream,
                                .gang = known_rank ? mesh.gang_of(stream.rank.rank).value() : 0,
                                .local_rank = rank - std::max(rank / mesh.per_host() * mesh.per_host(),
                                                              rank / gang_size * gang_size),
                                .mesh_ranks = mesh.size()}};
  }
  return entry->second;
}

void RankOutput::on_output(const StreamId& stream, std::string_view bytes, std::optional<WallTime> written) {
  const Known& from = known(stream);
  OutputWriter& to = writer(stream.stream);
  screen_.make_room();
  printer(stream.stream)
      .feed(from.key, from.source, bytes, to.buffer(), {.now = loop_.now(), .wall = written.value_or(wall_now())});
  to.flush_if_large();
  if (folds_) show_folded_later();
  show_quiet_later();
}

// What has no newline yet, and bars. A timer that comes too early for what has come since looks again.
void RankOutput::show_quiet() {
  screen_.make_room();
  out_printer_.show_quiet(loop_.now(), writer(OutputStream::kStdout).buffer());
  err_printer_.show_quiet(loop_.now(), writer(OutputStream::kStderr).buffer());
  screen_.out().flush();
  screen_.err().flush();
  show_quiet_later();
}

void RankOutput::show_quiet_later() {
  const Instant next = std::min(out_printer_.next_quiet(), err_printer_.next_quiet());
  if (quiet_timer_ != 0 || next == Instant::never() || stopped_) return;
  quiet_timer_ = loop_.at(next, [this] {
    quiet_timer_ = 0;
    show_quiet();
  });
}

void RankOutput::show_folded() {
  screen_.make_room();
  out_printer_.show_folded(loop_.now(), writer(OutputStream::kStdout).buffer());
  err_printer_.show_folded(loop_.now(), writer(OutputStream::kStderr).buffer());
  screen_.out().flush();
  screen_.err().flush();
  show_folded_later();
}

void RankOutput::show_folded_later() {
  const Instant next = std::min(out_printer_.next_fold(), err_printer_.next_fold());
  if (fold_timer_ != 0 || next == Instant::never() || stopped_) return;
  fold_timer_ = loop_.at(next, [this] {
    fold_timer_ = 0;
    show_folded();
  });
}

void RankOutput::on_lost(const StreamId& stream, std::uint64_t bytes) {
  const Known& from = known(stream);
  screen_.say(text("monarch: ", bytes, " bytes of ", from.source.mesh, "/", from.source.rank, "'s ",
                   stream.stream == OutputStream::kStdout ? "stdout" : "stderr", " are in no log any more\n"));
}

Status RankOutput::connect(const ViewerAddress& supervisor, const std::string& viewer,
                           std::function<void(Error)> on_closed) {
  connection_.reset();
  auto connection = OutputConnection::connect(
      loop_, supervisor, viewer,
      {.on_piece = [this](const OutputPiece& piece) { on_piece(piece); }, .on_closed = std::move(on_closed)});
  if (!connection.ok()) return connection.error();
  connection_ = std::move(*connection);
  hold_back();
  return {};
}

void RankOutput::on_piece(const OutputPiece& piece) {
  const StreamId stream{
      .rank = piece.process.rank, .generation = piece.process.generation.counter, .stream = piece.output.stream};
  piece.kept ? follower_.on_piece(stream, piece.output.offset, piece.output.bytes)
             : follower_.on_unkept(stream, piece.output.offset, piece.output.bytes);
  pump_later(Duration::zero());
}

void RankOutput::look_at_files() {
  follower_.look_at_files();
  pump_later(Duration::zero());
}

void RankOutput::watch_files() {
  const Instant begun = boot_now();
  look_at_files();
  // Looking at thousands of files takes its time: it must not become most of what we do.
  look_later(std::max(kLookPeriod, (boot_now() - begun) * kLookShare));
}

void RankOutput::look_later(Duration delay) {
  if (look_timer_ != 0) loop_.cancel(look_timer_);
  look_timer_ = loop_.at(boot_now() + delay, [this] {
    look_timer_ = 0;
    watch_files();
  });
}

void RankOutput::pump_later(Duration delay) {
  if (pump_timer_ != 0 || stopped_) return;
  pump_timer_ = loop_.at(loop_.now() + delay, [this] {
    pump_timer_ = 0;
    pump();
  });
}

void RankOutput::pump() {
  bool more = true;
  for (int step = 0; step < kStepsPerTurn && more; ++step) more = follower_.read_on();
  screen_.out().flush();
  screen_.err().flush();
  check_errors();
  hold_back();
  if (more) return pump_later(Duration::zero());
  if (follower_.waits()) {
    if (waiting_since_ == Instant::never()) waiting_since_ = loop_.now();
    if (loop_.now() < waiting_since_ + kGiveUpAfter) return pump_later(kRetryRead);
    follower_.give_up();
  }
  waiting_since_ = Instant::never();
  if (done_ && !follower_.held()) finish_printing();  // on_drained goes on
}

void RankOutput::hold_back() {
  if (connection_ != nullptr && screen_.full()) connection_->pause();
}

void RankOutput::check_errors() {
  if (screen_.out().error() == 0 || out_lost_said_) return;
  out_lost_said_ = true;
  if (on_reader_gone_) return on_reader_gone_();
  screen_.say(text("monarch: stdout: ", std::strerror(screen_.out().error()),
                   "; what ranks write is in the logs, and no longer shown\n"));
}

void RankOutput::go_on() {
  if (connection_ != nullptr && !screen_.full()) connection_->resume();
  pump_later(Duration::zero());
}

void RankOutput::stop() {
  stopped_ = true;
  disconnect();
  if (pump_timer_ != 0) loop_.cancel(std::exchange(pump_timer_, 0));
  if (look_timer_ != 0) loop_.cancel(std::exchange(look_timer_, 0));
  if (fold_timer_ != 0) loop_.cancel(std::exchange(fold_timer_, 0));
  loop_.cancel(std::exchange(quiet_timer_, 0));
}

void RankOutput::finish(std::function<void()> done) {
  disconnect();
  if (look_timer_ != 0) loop_.cancel(std::exchange(look_timer_, 0));
  done_ = std::move(done);
  look_at_files();
}

void RankOutput::finish_printing() {
  screen_.make_room();
  out_printer_.finish_all(screen_.out().buffer());
  err_printer_.finish_all(writer(OutputStream::kStderr).buffer());
  screen_.out().flush();
  screen_.err().flush();
  const auto done = std::exchange(done_, {});
  done();
}

}  // namespace monarch
