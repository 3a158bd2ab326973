#include "supervisor/journal/sync_round.h"

#include <algorithm>
#include <memory>

namespace monarch {

namespace {

using Stage = FileBeside::Stage;

void fail(FileBeside& file, Errno failure) {
  file.stage = Stage::kFailed;
  file.failure = failure;
}

// The segment's answer.
Errno sync_bytes(JournalFiles& files, JournalFile* segment, std::vector<FileBeside>& beside, std::uint64_t& waits) {
  std::vector<JournalFile*> all;
  std::vector<FileBeside*> whose;  // behind the segment
  std::vector<std::unique_ptr<JournalFile>> opened;
  if (segment != nullptr) all.push_back(segment);
  for (FileBeside& file : beside) {
    if (file.stage != Stage::kWritten) continue;
    std::unique_ptr<JournalFile> one;
    if (const Errno failure = files.open(file.aside ? aside_of(file.name) : file.name, one)) {
      fail(file, failure);
      continue;
    }
    all.push_back(one.get());
    whose.push_back(&file);
    opened.push_back(std::move(one));
  }
  if (all.empty()) return 0;
  ++waits;
  const std::vector<Errno> answers = files.sync_all(all);
  const std::size_t first = segment != nullptr ? 1 : 0;
  for (std::size_t i = 0; i < whose.size(); ++i) {
    whose[i]->stage = Stage::kSynced;
    if (answers[first + i] != 0) fail(*whose[i], answers[first + i]);
  }
  return segment != nullptr ? answers.front() : 0;
}

}  // namespace

Errno sync_round(JournalFiles& files, const SyncRound& round, std::vector<FileBeside>& beside, std::uint64_t& waits) {
  if (const Errno failure = sync_bytes(files, round.segment, beside, waits)) return failure;
  for (FileBeside& file : beside) {
    if (file.stage != Stage::kSynced) continue;
    file.stage = Stage::kNamed;
    if (!file.aside) continue;
    if (const Errno failure = files.rename(aside_of(file.name), file.name)) fail(file, failure);
  }
  const auto is_new = [](const FileBeside& file) { return file.stage == Stage::kNamed; };
  if (!round.new_segment && std::none_of(beside.begin(), beside.end(), is_new)) return 0;
  ++waits;
  if (const Errno failure = files.sync_directory()) return failure;
  for (FileBeside& file : beside) {
    if (is_new(file)) file.stage = Stage::kDurable;
  }
  return 0;
}

}  // namespace monarch
