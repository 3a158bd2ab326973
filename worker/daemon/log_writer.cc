#include "worker/daemon/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "worker/daemon/error_file.h"

namespace monarch::daemon {
namespace {

constexpr std::size_t kMeshNameBytes = 32;
constexpr Duration kLookAgain = Duration::milliseconds(20);  // nothing tells that there is a descriptor again

// It becomes a directory's name, whoever sent it: a mesh's, or with `-` that of what is none of the spec's.
bool is_mesh_name(const std::string& name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= kMeshNameBytes && lower(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

// All that a pipe has.
std::string read_out(int pipe, std::size_t limit) {
  std::string bytes(limit, '\0');
  std::size_t done = 0;
  while (done < limit) {
    const ssize_t n = ::read(pipe, bytes.data() + done, limit - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

LogWriter::LogWriter(EventLoop& loop, Options options, OutputSink& sink, Handlers handlers)
    : loop_(loop), options_(std::move(options)), sink_(sink), handlers_(std::move(handlers)) {}

LogWriter::~LogWriter() {
  for (const auto& [incarnation, source] : sources_) {
    for (const auto& stream : source->streams) unwatch(*stream);
    loop_.cancel(source->grace);
  }
  loop_.cancel(tell_timer_);
}

Status LogWriter::add(LogSource source) {
  if (!is_mesh_name(source.mesh_name)) {
    return Error{ErrorCode::kInvalid, text("output of a mesh called '", printable(source.mesh_name), "'")};
  }
  if (sources_.contains(source.incarnation)) return Error{ErrorCode::kBusy, "these pipes were handed out before"};
  if (source.standby) hand_over(*source.standby);
  auto made = std::make_unique<Source>();
  made->incarnation = source.incarnation;
  made->added_at = loop_.now();
  const std::string stem = text(source.incarnation.rank.rank.value(), '.', source.incarnation.generation.counter);
  const std::string folder = options_.log_directory + "/" + source.mesh_name;
  made->error_path = text(folder, '/', stem, ".error.json");
  const auto add_stream = [&](UniqueFd pipe, OutputStream which, const char* suffix) {
    const LogFile::Options file{folder, stem + suffix, source.max_bytes};
    made->streams.push_back(std::make_unique<Stream>(file, std::move(pipe), which));
  };
  add_stream(std::move(source.stdout_pipe), OutputStream::kStdout, ".out");
  add_stream(std::move(source.stderr_pipe), OutputStream::kStderr, ".err");
  Source& kept = *made;
  sources_.emplace(source.incarnation, std::move(made));
  for (const auto& stream : kept.streams) {
    if (Status started = start_stream(kept, *stream); !started.ok()) {
      forget(source.incarnation);
      return started;
    }
  }
  changed(kept);
  return {};
}

Status LogWriter::start_stream(Source& source, Stream& stream) {
  // The flag belongs to the pipe's end, which the keeper shares; it never reads.
  const int flags = ::fcntl(stream.pipe.get(), F_GETFL);
  if (flags < 0 || ::fcntl(stream.pipe.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return errno_error("making a rank's pipe non-blocking", errno);
  }
  const Status opened = stream.file.open();
  if (!opened.ok() && !is_short_of_descriptors(opened)) {
    log_warn("output is lost until this is mended: ", opened.error().message);
    stream.failing_before = true;  // said here
    totals_.failure = opened.error().message;
  }
  stream.streamed = stream.file.end_offset();  // what a daemon before this one wrote is read from the file
  return watch(source, stream);
}

Status LogWriter::watch(Source& source, Stream& stream) {
  MONARCH_ASSIGN(stream.watch, loop_.watch(stream.pipe.get(), Interest::kRead,
                                           [this, &source, &stream](Readiness) { on_ready(source, stream); }));
  return {};
}

void LogWriter::unwatch(Stream& stream) {
  loop_.forget(std::exchange(stream.watch, 0));
  loop_.cancel(std::exchange(stream.look_again, 0));
}

// A generation that ends as the next begins has descriptors that are about to be free.
bool LogWriter::has_patience(const Stream& stream) const {
  return stream.short_since == Instant::never() || loop_.now() < stream.short_since + kDescriptorPatience;
}

LogFile::Taken LogWriter::take(Stream& stream) {
  LogFile::Taken taken = has_patience(stream) ? stream.file.take_or_wait(stream.pipe.get(), limits::kOutputChunkBytes)
                                              : stream.file.take(stream.pipe.get(), limits::kOutputChunkBytes);
  if (taken.outcome == LogFile::Outcome::kWritten) stream.short_since = Instant::never();
  return taken;
}

void LogWriter::read_later(Source& source, Stream& stream) {
  if (stream.short_since == Instant::never()) stream.short_since = loop_.now();
  unwatch(stream);
  stream.look_again = loop_.at(loop_.now() + kLookAgain, [this, &source, &stream] {
    stream.look_again = 0;
    if (!watch(source, stream).ok()) read_later(source, stream);
  });
}

void LogWriter::on_ready(Source& source, Stream& stream) {
  // Before the bytes are there: who looks for what is newer than a time must not pass over them.
  stream.times.note(stream.file.end_offset(), wall_now());
  const LogFile::Taken taken = take(stream);
  account(stream);
  hold(stream, taken.lost);
  if (taken.bytes > 0) source.last_output_at = loop_.now();
  if (stream.which == OutputStream::kStderr) look_for_traceback(source, stream, taken);
  switch (taken.outcome) {
    case LogFile::Outcome::kWritten:
    case LogFile::Outcome::kLost:
      // What is not taken now stays for sink_ready(). Twice: a file that is full has taken some, and the rest is behind
      // it.
      if (stream_piece(source, stream)) (void)stream_piece(source, stream);
      return changed(source);
    case LogFile::Outcome::kEmpty: return;
    case LogFile::Outcome::kEnded: return end_stream(source, stream);
    case LogFile::Outcome::kWaits: return read_later(source, stream);
  }
}

void LogWriter::account(Stream& stream) {
  totals_.lost_bytes += stream.file.lost_bytes() - std::exchange(stream.lost_before, stream.file.lost_bytes());
  if (stream.file.failing() == std::exchange(stream.failing_before, stream.file.failing())) return;
  if (stream.file.failing()) log_warn("output is lost: ", stream.file.failure());
  if (!stream.file.failing()) log_info("output is written again; lost in all: ", totals_.lost_bytes, " bytes");
  totals_.failure.clear();
  for (const auto& [incarnation, source] : sources_) {
    for (const auto& each : source->streams) {
      if (each->file.failing()) totals_.failure = each->file.failure();
    }
  }
}

// The newest of it: a traceback is what comes last.
void LogWriter::hold(Stream& stream, std::string_view lost) {
  if (lost.empty()) return;
  const std::uint64_t at = stream.file.end_offset();
  if (std::exchange(stream.unkept_at, at) != at) stream.unkept.clear();  // the file has gone on behind it
  stream.unkept += lost;
  constexpr std::size_t kMost = limits::kOutputChunkBytes;
  if (stream.unkept.size() > kMost) stream.unkept.erase(0, stream.unkept.size() - kMost);
}

// One piece of what the sink has not got yet; false where there is nothing to send or nobody to take it.
bool LogWriter::stream_piece(const Source& source, Stream& stream) {
  std::uint64_t end = stream.file.end_offset();
  if (!options_.copied && end - stream.streamed > kBacklogBytes) {
    (void)skip_to(source, stream, end - limits::kOutputChunkBytes);
  }
  if (!sink_.wanted()) return false;
  // In its place: what the file has before it comes first, and what it has behind it later.
  if (!stream.unkept.empty() && stream.streamed <= stream.unkept_at) end = std::min(end, stream.unkept_at);
  if (stream.streamed >= end && !stream.unkept.empty()) return stream_unkept(source, stream);
  if (stream.streamed == end) return false;
  const std::size_t bytes = std::min<std::uint64_t>(end - stream.streamed, limits::kOutputChunkBytes);
  Output output{stream.which, stream.streamed, std::string(bytes, '\0')};
  output.bytes.resize(stream.file.read_back(stream.streamed, output.bytes.data(), bytes));
  if (output.bytes.empty()) {
    // Rotated away, or the disk does not give it back.
    return skip_to(source, stream, stream.streamed < stream.file.start_offset() ? stream.file.start_offset() : end);
  }
  const std::size_t taken = output.bytes.size();
  if (!sink_.offer(source.incarnation, std::move(output))) return false;
  stream.streamed += taken;
  return true;
}

bool LogWriter::stream_unkept(const Source& source, Stream& stream) {
  if (!sink_.offer_unkept(source.incarnation, Output{stream.which, stream.unkept_at, stream.unkept})) return false;
  stream.unkept.clear();
  return true;
}

// False: a copy must be told of it, and could not be now.
bool LogWriter::skip_to(const Source& source, Stream& stream, std::uint64_t offset) {
  if (options_.copied && !sink_.gone(source.incarnation, {.stream = stream.which, .oldest = offset})) return false;
  totals_.not_streamed_bytes += offset - stream.streamed;
  stream.streamed = offset;
  return true;
}

bool LogWriter::stream_error_file(Source& source) {
  if (source.error_streamed == source.error.size() || !sink_.wanted()) return false;
  Output output{OutputStream::kErrorFile, source.error_streamed,
                source.error.substr(source.error_streamed, limits::kOutputChunkBytes)};
  const std::size_t bytes = output.bytes.size();
  if (!sink_.offer(source.incarnation, std::move(output))) return false;
  source.error_streamed += bytes;
  return true;
}

void LogWriter::say_again(const Incarnation& incarnation, const OutputFrom& from) {
  const auto found = sources_.find(incarnation);
  if (found == sources_.end()) return;
  Source& source = *found->second;
  if (from.stream == OutputStream::kErrorFile) {
    source.error_streamed = static_cast<std::size_t>(std::min<std::uint64_t>(from.offset, source.error.size()));
  } else {
    Stream& stream = *source.streams[from.stream == OutputStream::kStdout ? 0 : 1];
    stream.streamed = std::min(from.offset, stream.file.end_offset());
  }
  sink_ready();
}

void LogWriter::sink_ready() {
  if (std::exchange(catching_up_, true)) return;
  loop_.defer(scope_.guard([this] { catch_up(); }));
}

// A piece of each stream a turn, so that pipes are read in between.
void LogWriter::catch_up() {
  catching_up_ = false;
  bool more = false;
  for (const auto& [incarnation, source] : sources_) {
    for (const auto& stream : source->streams) more = stream_piece(*source, *stream) || more;
    more = stream_error_file(*source) || more;
  }
  if (more) sink_ready();
}

void LogWriter::end_stream(Source& source, Stream& stream) {
  unwatch(stream);
  stream.pipe.reset();
  if (!stream.held.empty()) write_held(source, stream);
  stream.file.close();
  sink_ready();
  changed(source);
  if (std::any_of(source.streams.begin(), source.streams.end(), [](const auto& s) { return s->is_open(); })) return;
  loop_.cancel(source.grace);
  source.dirty = !tell(source);
}

void LogWriter::rank_ended(const Incarnation& incarnation) {
  const auto found = sources_.find(incarnation);
  if (found == sources_.end()) return;
  Source& source = *found->second;
  if (!std::exchange(source.ended, true)) {
    look_at_error_file(source);
    if (options_.copied) source.error = read_error_file(source.error_path, kErrorFileBytes);
    sink_ready();
    source.dirty = !tell(source);
  }
  if (source.told_complete || source.grace != 0) return;
  found->second->grace = loop_.at(loop_.now() + kEndGrace, [this, incarnation] { give_up(incarnation); });
}

void LogWriter::give_up(const Incarnation& incarnation) {
  const auto found = sources_.find(incarnation);
  if (found == sources_.end()) return;
  Source& source = *found->second;
  for (const auto& stream : source.streams) {
    if (!stream->pipe.valid()) continue;
    drain(*stream);
    log_warn("rank ", incarnation.rank.rank.value(), " has ended, and a process outside of its tree holds its ",
             stream->which == OutputStream::kStdout ? "stdout" : "stderr", " open: closed");
    end_stream(source, *stream);
  }
}

// Not more than the pipe holds: what a stranger goes on writing is not the rank's output.
void LogWriter::drain(Stream& stream) {
  for (std::size_t drained = 0; drained < limits::kOutputPipeBytes;) {
    const LogFile::Taken taken = take(stream);
    if (taken.outcome == LogFile::Outcome::kWaits) {
      stream.held = read_out(stream.pipe.get(), limits::kOutputPipeBytes - drained);
      return;
    }
    account(stream);
    hold(stream, taken.lost);
    if (taken.bytes == 0) break;
    drained += taken.bytes;
  }
}

// What was in a pipe that is closed.
void LogWriter::write_held(Source& source, Stream& stream) {
  if (stream.short_since == Instant::never()) stream.short_since = loop_.now();
  if (is_short_of_descriptors(stream.file.open()) && has_patience(stream)) {
    stream.look_again = loop_.at(loop_.now() + kLookAgain, [this, &source, &stream] {
      stream.look_again = 0;
      end_stream(source, stream);
    });
    return;
  }
  stream.times.note(stream.file.end_offset(), wall_now());
  const std::string bytes = std::exchange(stream.held, {});
  const std::string_view lost = std::string_view(bytes).substr(stream.file.put(bytes));
  stream.file.lose(lost.size());
  account(stream);
  hold(stream, lost);
}

// The process goes on as another rank, which has the same pipes. What is in them already is the standby's, and stays on
// offer until that is forgotten.
void LogWriter::hand_over(const Incarnation& standby) {
  const auto found = sources_.find(standby);
  if (found == sources_.end()) return;
  Source& source = *found->second;
  source.ended = true;  // without an error file: it has not failed
  for (const auto& stream : source.streams) {
    if (!stream->pipe.valid()) continue;
    stream->times.note(stream->file.end_offset(), wall_now());
    drain(*stream);
    end_stream(source, *stream);
  }
}

void LogWriter::forget(const Incarnation& incarnation) {
  const auto found = sources_.find(incarnation);
  if (found == sources_.end()) return;
  for (const auto& stream : found->second->streams) unwatch(*stream);
  loop_.cancel(found->second->grace);
  sources_.erase(found);
}

void LogWriter::changed(Source& source) {
  source.dirty = true;
  if (tell_armed_) return;
  tell_armed_ = true;
  tell_timer_ = loop_.at(loop_.now() + kTellPeriod, [this] {
    tell_armed_ = false;
    tell_all();
  });
}

void LogWriter::tell_all() {
  for (const auto& [incarnation, source] : sources_) {
    if (!source->dirty) continue;
    if (!tell(*source)) return changed(*source);  // the owner's inbox is full: later
    source->dirty = false;
  }
}

bool LogWriter::tell(Source& source) {
  const LogFile& out = source.streams[0]->file;
  const LogFile& err = source.streams[1]->file;
  const OutputTold told{source.incarnation,
                        out.end_offset(),
                        err.end_offset(),
                        complete(source),
                        static_cast<std::uint32_t>(source.error.size()),
                        evidence_of(source)};
  if (!handlers_.on_progress(told, totals_)) return false;
  source.told_complete = told.complete;
  return true;
}

// Its beginning counts: what follows from a failure has tracebacks of its own, and is told later.
void LogWriter::look_for_traceback(Source& source, const Stream& stream, const LogFile::Taken& taken) {
  constexpr std::string_view kFirstLine = "Traceback (most recent call last)";
  constexpr std::size_t kLooked = 64U << 10U;  // of a piece: who writes more at once tells no failure
  if (taken.bytes == 0) return;
  std::string bytes = std::exchange(source.stderr_end, {});
  const std::size_t before = bytes.size();
  if (taken.outcome == LogFile::Outcome::kWritten) {
    bytes.resize(before + std::min(taken.bytes, kLooked));
    bytes.resize(before + stream.file.read_back(taken.offset, bytes.data() + before, bytes.size() - before));
  }
  bytes += std::string_view(taken.lost).substr(0, kLooked);
  source.stderr_end = bytes.substr(bytes.size() - std::min(bytes.size(), kFirstLine.size() - 1));
  if (bytes.find(kFirstLine) == std::string::npos) return;
  source.stderr_end.clear();
  const bool another = source.traceback_at == Instant::never() || loop_.now() > source.traceback_at + kOneFailure;
  if (!another) return;
  source.traceback_at = loop_.now();
  look_at_error_file(source);
  source.dirty = !tell(source);  // before anybody is told of an end
}

void LogWriter::look_at_error_file(Source& source) {
  const auto age = age_of_error_file(source.error_path);
  if (!age) return;
  const Instant at = loop_.now() - *age;
  if (at >= source.added_at) source.error_file_at = at;
}

Instant LogWriter::evidence_of(const Source& source) {
  if (source.error_file_at != Instant::never()) return source.error_file_at;
  const bool goes_on =
      source.traceback_at == Instant::never() || source.last_output_at > source.traceback_at + kTeardown;
  return goes_on ? Instant::never() : source.traceback_at;
}

// An error file can be written after both streams were closed.
bool LogWriter::complete(const Source& source) const {
  return !source.streams[0]->is_open() && !source.streams[1]->is_open() && (source.ended || !options_.copied);
}

}  // namespace monarch::daemon
