#include "supervisor/workers/output_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/files/directories.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::array<const char*, 2> kSuffixes{".out", ".err"};

std::size_t index_of(OutputStream stream) { return stream == OutputStream::kStdout ? 0 : 1; }

}  // namespace

OutputCopy::OutputCopy(OutputCopyOptions options, Handlers handlers)
    : options_(std::move(options)), handlers_(std::move(handlers)) {}

std::string OutputCopy::stem(RankId id, Generation generation) const {
  return text(id.rank.value(), '.', generation.counter);
}

// Made at its first piece or word: a supervisor that came back goes on where the files end. Nothing for a mesh that is
// none.
OutputCopy::RankCopy* OutputCopy::rank_of(const Incarnation& process) {
  const RankId id = process.rank;
  if (id.mesh.value() >= options_.mesh_names.size()) return nullptr;
  const auto [found, is_new] = ranks_.try_emplace({id, process.generation.counter});
  RankCopy& rank = found->second;
  if (!rank.done) use(found->first, rank);
  if (!is_new) return &rank;
  rank.generation = process.generation;
  const std::string folder = text(options_.log_directory, "/", options_.mesh_names[id.mesh.value()]);
  for (std::size_t i = 0; i < rank.streams.size(); ++i) {
    const std::string name = stem(id, process.generation) + kSuffixes[i];
    rank.streams[i].file = std::make_unique<LogFile>(LogFile::Options{folder, name, options_.max_bytes});
    rank.streams[i].times = std::make_unique<LogTimes>(text(folder, "/", name));
    if (const Status opened = rank.streams[i].file->open(); !opened.ok()) {
      log_warn("output is not copied until this is mended: ", opened.error().message);
      rank.streams[i].failing = true;
      handlers_.on_failure(opened.error().message);
    }
  }
  return &rank;
}

// Its files are, or are about to be, open. LogFile opens them when there is something to write.
void OutputCopy::use(const Key& key, RankCopy& rank) {
  if (rank.used != 0) {
    open_.erase(rank.used);
  } else if (open_.size() >= options_.most_open) {
    close_files(ranks_.at(open_.begin()->second));
  }
  rank.used = ++uses_;
  open_.emplace(rank.used, key);
}

void OutputCopy::close_files(RankCopy& rank) {
  open_.erase(std::exchange(rank.used, 0));
  for (Stream& stream : rank.streams) {
    if (stream.file) stream.file->close();
  }
}

void OutputCopy::on_piece(const Incarnation& process, const Output& piece, Instant now) {
  RankCopy* rank = rank_of(process);
  if (rank == nullptr || rank->done) return;
  piece.stream == OutputStream::kErrorFile ? take_error(*rank, piece, now)
                                           : take(process.rank, *rank, piece.stream, piece, now);
  check(process.rank, *rank);
}

void OutputCopy::take(RankId id, RankCopy& rank, OutputStream which, const Output& piece, Instant now) {
  Stream& stream = rank.streams[index_of(which)];
  const std::uint64_t piece_end = piece.offset + piece.bytes.size();
  stream.known = std::max(stream.known, piece_end);
  const std::uint64_t end = stream.end();
  if (piece_end <= end) return;  // it was said again
  if (piece.offset > end) {
    // Once for each gap: the pieces behind it are on their way already.
    if (now - stream.quiet_since < kPatience) return;
    stream.quiet_since = now;
    return handlers_.ask({id, rank.generation}, {.stream = which, .offset = end});
  }
  stream.quiet_since = now;
  const std::string_view fresh = std::string_view(piece.bytes).substr(static_cast<std::size_t>(end - piece.offset));
  stream.times->note(end, wall_now());
  const std::size_t taken = stream.file->put(fresh);
  // What the disk did not take is asked for again, until it does.
  if (std::exchange(stream.failing, taken < fresh.size()) == stream.failing) return;
  stream.failing ? log_warn("output is not copied until this is mended: ", stream.file->failure())
                 : log_info("output is copied again");
  tell_failure();
}

void OutputCopy::tell_failure() const {
  std::string why;
  for (const auto& [key, rank] : ranks_) {
    for (const Stream& stream : rank.streams) {
      if (stream.failing) why = stream.file->failure();
    }
  }
  handlers_.on_failure(why);
}

void OutputCopy::take_error(RankCopy& rank, const Output& piece, Instant now) {
  if (piece.offset != rank.error.size() || rank.error.size() + piece.bytes.size() > kErrorFileBytes) return;
  rank.error += piece.bytes;
  rank.error_quiet_since = now;
}

void OutputCopy::on_gone(const Incarnation& process, const OutputGone& gone, Instant now) {
  const RankId id = process.rank;
  RankCopy* rank = rank_of(process);
  if (rank == nullptr || rank->done || gone.stream == OutputStream::kErrorFile) return;
  Stream& stream = rank->streams[index_of(gone.stream)];
  const std::uint64_t end = stream.end();
  if (gone.oldest <= end) return;
  log_warn("rank ", id.rank.value(), " of ", options_.mesh_names[id.mesh.value()], ": ", gone.oldest - end,
           " bytes of its output were rotated away on its host before they were copied");
  if (const Status begun = stream.file->begin_at(gone.oldest); !begun.ok()) log_warn(begun.error().message);
  stream.known = std::max(stream.known, gone.oldest);
  stream.quiet_since = now;
  check(id, *rank);
}

void OutputCopy::on_written(const OutputWritten& written, Instant now) {
  RankCopy* rank = rank_of(written.process);
  if (rank == nullptr) return;
  if (rank->done) return handlers_.on_copied(written.process);
  const std::array<std::uint64_t, 2> bytes{written.stdout_bytes, written.stderr_bytes};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Stream& stream = rank->streams[i];
    if (bytes[i] <= stream.known) continue;
    // What is on its way gets its time.
    if (stream.known <= stream.end()) stream.quiet_since = now;
    stream.known = bytes[i];
  }
  if (written.complete && !std::exchange(rank->complete, true)) {
    rank->error_known = std::min<std::uint32_t>(written.error_bytes, kErrorFileBytes);
    rank->error_quiet_since = now;
  }
  check(written.process.rank, *rank);
}

void OutputCopy::check(RankId id, RankCopy& rank) {
  if (!rank.complete || rank.error.size() < rank.error_known) return;
  for (const Stream& stream : rank.streams) {
    if (stream.end() < stream.known) return;
  }
  if (!rank.error.empty()) {
    const Status written = write_error_file(id, rank);
    if (!written.ok()) log_warn("an error file is not copied: ", written.error().message);
  }
  rank.done = true;
  close_files(rank);
  rank.streams = {};
  rank.error = {};
  handlers_.on_copied({id, rank.generation});
}

void OutputCopy::on_time(Instant now) {
  for (auto& [key, rank] : ranks_) {
    if (rank.done) continue;
    for (std::size_t i = 0; i < rank.streams.size(); ++i) {
      Stream& stream = rank.streams[i];
      if (stream.end() >= stream.known || now - stream.quiet_since < kPatience) continue;
      stream.quiet_since = now;
      handlers_.ask({key.first, rank.generation},
                    {.stream = i == 0 ? OutputStream::kStdout : OutputStream::kStderr, .offset = stream.end()});
    }
    if (!rank.complete || rank.error.size() >= rank.error_known || now - rank.error_quiet_since < kPatience) continue;
    rank.error_quiet_since = now;
    handlers_.ask({key.first, rank.generation}, {.stream = OutputStream::kErrorFile, .offset = rank.error.size()});
  }
}

Instant OutputCopy::next_due() const {
  Instant next = Instant::never();
  for (const auto& [key, rank] : ranks_) {
    if (rank.done) continue;
    for (const Stream& stream : rank.streams) {
      if (stream.end() < stream.known) next = std::min(next, stream.quiet_since + kPatience);
    }
    if (rank.complete && rank.error.size() < rank.error_known)
      next = std::min(next, rank.error_quiet_since + kPatience);
  }
  return next;
}

// Whole or not at all: who looks for a first cause reads it at any time.
Status OutputCopy::write_error_file(RankId id, const RankCopy& rank) const {
  const std::string folder = text(options_.log_directory, "/", options_.mesh_names[id.mesh.value()]);
  MONARCH_TRY(make_directories(folder));
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) return errno_error(text("open ", folder), errno);
  const std::string name = stem(id, rank.generation) + ".error.json";
  const std::string fresh = name + ".new";
  const UniqueFd file(
      ::openat(directory.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error(text("open ", folder, "/", fresh), errno);
  const ssize_t n = ::write(file.get(), rank.error.data(), rank.error.size());
  if (n != static_cast<ssize_t>(rank.error.size())) return errno_error(text("write ", fresh), n < 0 ? errno : ENOSPC);
  if (::renameat(directory.get(), fresh.c_str(), directory.get(), name.c_str()) != 0) {
    return errno_error(text("rename ", fresh), errno);
  }
  return {};
}

}  // namespace monarch
