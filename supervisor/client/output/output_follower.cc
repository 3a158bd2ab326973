#include "supervisor/client/output/output_follower.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "supervisor/client/output/log_file_reader.h"
#include "transport/base/limits.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch {

std::optional<OutputFileName> parse_output_file_name(std::string_view name) {
  OutputFileName parsed;
  std::uint32_t rank = 0;
  if (!take_number(name, rank) || !name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  if (!take_number(name, parsed.generation)) return std::nullopt;
  if (name != ".out" && name != ".err") return std::nullopt;
  parsed.rank = Rank(rank);
  parsed.stream = name == ".out" ? OutputStream::kStdout : OutputStream::kStderr;
  return parsed;
}

std::string output_file_name(const OutputFileName& name) {
  return text(name.rank.value(), ".", name.generation, name.stream == OutputStream::kStdout ? ".out" : ".err");
}

OutputFollower::OutputFollower(OutputFollowerOptions options, OutputSink& sink)
    : options_(std::move(options)), sink_(sink) {}

std::string OutputFollower::path_of(const StreamId& id) const {
  return text(options_.log_directory, "/", options_.mesh_names[id.rank.mesh.value()], "/",
              output_file_name({.rank = id.rank.rank, .generation = id.generation, .stream = id.stream}));
}

OutputFollower::Stream* OutputFollower::find(const StreamId& id) {
  if (id.rank.mesh.value() >= options_.mesh_names.size()) return nullptr;
  if (options_.wanted && !options_.wanted(id)) return nullptr;
  return &streams_[id];
}

template <class Visit>
void OutputFollower::each_file(Visit visit) const {
  for (std::uint32_t mesh = 0; mesh < options_.mesh_names.size(); ++mesh) {
    const std::string directory = text(options_.log_directory, "/", options_.mesh_names[mesh]);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
    if (entries == nullptr) continue;  // nothing of this mesh has started
    while (const dirent* entry = ::readdir(entries.get())) {
      const auto name = parse_output_file_name(entry->d_name);
      if (!name) continue;
      const StreamId id{.rank = {MeshId(mesh), name->rank}, .generation = name->generation, .stream = name->stream};
      if (options_.wanted && !options_.wanted(id)) continue;
      const auto file = LogFileReader::open(text(directory, "/", entry->d_name));
      if (file.ok()) visit(id, *file);  // otherwise it was just rotated, and is seen at the next look
    }
  }
}

void OutputFollower::skip_what_is_there() {
  each_file([this](const StreamId& id, const LogFileReader& file) {
    Stream& stream = streams_[id];
    stream.next = std::max(stream.next, start_of_line(file, file.end()));
    stream.known = std::max({stream.known, stream.next, file.end()});
  });
}

void OutputFollower::on_piece(const StreamId& id, std::uint64_t offset, std::string_view bytes) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  const std::uint64_t end = offset + bytes.size();
  const bool in_order = stream->next == stream->known;
  stream->known = std::max(stream->known, end);
  if (!in_order || offset > stream->next || end <= stream->next || !sink_.takes(id)) return;
  bytes.remove_prefix(static_cast<std::size_t>(stream->next - offset));  // seen before, through the file
  stream->next = end;
  sink_.on_output(id, bytes, std::nullopt);
  pass_unkept_on(id, *stream);
}

void OutputFollower::on_unkept(const StreamId& id, std::uint64_t offset, std::string_view bytes) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  if (std::exchange(stream->unkept_at, offset) != offset) stream->unkept.clear();
  stream->unkept += bytes;
  std::string& unkept = stream->unkept;
  if (unkept.size() > limits::kOutputChunkBytes) unkept.erase(0, unkept.size() - limits::kOutputChunkBytes);
  stream->known = std::max(stream->known, offset);
  pass_unkept_on(id, *stream);
}

void OutputFollower::pass_unkept_on(const StreamId& id, Stream& stream) {
  if (stream.unkept.empty() || stream.next < stream.unkept_at || !sink_.takes(id)) return;
  sink_.on_output(id, std::exchange(stream.unkept, {}), std::nullopt);
}

void OutputFollower::look_at_files() {
  each_file([this](const StreamId& id, const LogFileReader& file) {
    Stream& stream = streams_[id];
    stream.known = std::max(stream.known, file.end());
  });
}

// When the bytes at `offset` were written; those from `end` on may be newer.
std::optional<WallTime> OutputFollower::time_of(const StreamId& id, std::uint64_t offset, std::uint64_t& end) {
  if (times_of_ != id || offset >= times_.known_until()) {
    times_ = LogTimesReader::read(path_of(id));
    times_of_ = id;
  }
  end = std::min(end, times_.next_after(offset));
  return times_.time_at(offset);
}

void OutputFollower::start_at(const OutputStart& start) {
  if (!start.since && !start.lines) return;
  std::map<StreamId, std::uint64_t> starts;
  std::map<std::pair<RankId, OutputStream>, std::vector<StreamId>> generations;
  each_file([&](const StreamId& id, const LogFileReader& file) {
    (void)file;
    generations[{id.rank, id.stream}].push_back(id);
  });
  for (auto& [stream, ids] : generations) {
    std::sort(ids.begin(), ids.end());
    std::uint64_t lines = start.lines.value_or(UINT64_MAX);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {  // the newest first
      const auto file = LogFileReader::open(path_of(*id));
      if (!file.ok()) continue;
      const TailStart tail = start.lines ? start_of_tail(*file, lines) : TailStart{.offset = 0, .lines = 0};
      lines -= std::min(lines, tail.lines);
      std::uint64_t& next = starts[*id];
      next = tail.offset;
      if (start.since) next = std::max(next, start_since(*file, LogTimesReader::read(path_of(*id)), *start.since));
      Stream& known = streams_[*id];
      known.next = std::max(known.next, next);
      known.known = std::max({known.known, known.next, file->end()});
    }
  }
}

OutputFollower::Step OutputFollower::read_step(const StreamId& id, Stream& stream) {
  const auto file = LogFileReader::open(path_of(id));
  if (!file.ok() || file->end() <= stream.next) return Step::kNothingThere;
  if (stream.next < file->first()) {
    sink_.on_lost(id, file->first() - stream.next);
    stream.next = file->first();
    stream.known = std::max(stream.known, stream.next);
    if (stream.next >= file->end()) return Step::kNothingThere;
  }
  std::uint64_t missing = current_end_ > stream.next ? current_end_ - stream.next : kStepBytes;
  if (!stream.unkept.empty()) missing = std::min(missing, stream.unkept_at - stream.next);
  std::uint64_t end = stream.next + std::min<std::uint64_t>(missing, kStepBytes);
  const std::optional<WallTime> written = options_.with_times ? time_of(id, stream.next, end) : std::nullopt;
  const std::string bytes = file->read(stream.next, static_cast<std::size_t>(end - stream.next));
  if (bytes.empty()) return Step::kNothingThere;
  stream.next += bytes.size();
  stream.known = std::max(stream.known, stream.next);
  sink_.on_output(id, bytes, written);
  pass_unkept_on(id, stream);
  return Step::kRead;
}

bool OutputFollower::read_on() {
  if (current_) {
    Stream& stream = streams_[*current_];
    if (stream.next < current_end_ && sink_.takes(*current_) && read_step(*current_, stream) == Step::kRead)
      return true;
  }
  // The next one in turn after the current one; all of them, once around.
  auto next = current_ ? streams_.upper_bound(*current_) : streams_.begin();
  for (std::size_t tried = 0; tried < streams_.size(); ++tried, ++next) {
    if (next == streams_.end()) next = streams_.begin();
    auto& [id, stream] = *next;
    if (!sink_.takes(id)) continue;
    pass_unkept_on(id, stream);  // what was held
    if (stream.next >= stream.known) continue;
    current_ = id;
    current_end_ = stream.known;
    if (read_step(id, stream) == Step::kRead) return true;
  }
  current_.reset();
  return false;
}

bool OutputFollower::waits() const {
  return std::any_of(streams_.begin(), streams_.end(), [this](const auto& entry) {
    return entry.second.next < entry.second.known && sink_.takes(entry.first);
  });
}

bool OutputFollower::held() const {
  return std::any_of(streams_.begin(), streams_.end(), [this](const auto& entry) {
    return (entry.second.next < entry.second.known || !entry.second.unkept.empty()) && !sink_.takes(entry.first);
  });
}

void OutputFollower::give_up() {
  for (auto& [id, stream] : streams_) {
    if (stream.next >= stream.known || !sink_.takes(id)) continue;
    sink_.on_lost(id, stream.known - stream.next);
    stream.next = stream.known;
    pass_unkept_on(id, stream);
  }
}

}  // namespace monarch
