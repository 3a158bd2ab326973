// Writes the corpus of journal_fuzz into the folder given: whole journals of one and of several lives, with and without
// a snapshot, and each of them cut short, with a byte changed, and with a file missing.
// Run it again when the format changes: journal-corpus tests/fuzz/corpus/journal
//
// Thread: main, alone.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/journal_image.h"
#include "tests/supervisor/journal/fake_journal_files.h"
#include "tests/supervisor/journal/journal_story.h"

namespace monarch {
namespace {

JournalImage image_of(const testing::FakeJournalFiles& files) {
  JournalImage image;
  for (const auto& [name, inode] : files.names()) {
    if (name == kSnapshotName) image.snapshot = inode->bytes;
    if (segment_number(name)) image.segments.push_back({name, inode->bytes});
  }
  return image;
}

JournalImage lives(int count, const testing::StoryOptions& story) {
  testing::FakeJournalFiles files;
  for (int life = 0; life < count; ++life) testing::live(files, story);
  return image_of(files);
}

// A supervisor that died between a sync that failed and the next.
JournalImage poisoned() {
  testing::FakeJournalFiles files;
  int syncs = 0;
  files.fault = [&](testing::Call call, const std::string&) -> Errno {
    if (call == testing::Call::kRemove) return EROFS;
    return call == testing::Call::kSync && ++syncs % 3 == 0 ? ENOSPC : 0;
  };
  testing::live(files, {.batches = 6, .per_batch = 2, .writer = {}});
  return image_of(files);
}

JournalImage with_unknown_type(std::uint16_t type) {
  Record record;
  record.type = static_cast<RecordType>(type);
  record.term = Term(1);
  record.lsn = 1;
  JournalImage image;
  image.segments.push_back({segment_name(1), encode_segment_header({.number = 1, .first_lsn = 1, .seed = 0}) +
                                                 encode_record(record, 0).bytes});
  return image;
}

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }
  void add(const std::string& name, const JournalImage& image) { write(name, to_input(image)); }
  void add_with_faults(const std::string& name, const JournalImage& image) {
    add(name, image);
    JournalImage cut = image;
    cut.segments.back().bytes.resize(cut.segments.back().bytes.size() - 7);
    add(name + "-cut", cut);
    JournalImage flipped = image;
    flipped.segments.front().bytes[100] ^= 1;
    add(name + "-flipped", flipped);
    if (image.segments.size() < 2) return;
    JournalImage missing = image;
    missing.segments.erase(missing.segments.begin() + 1);
    add(name + "-missing", missing);
  }
  bool good() const { return good_; }

 private:
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream file(folder_ / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    good_ = good_ && file.good();
  }
  std::filesystem::path folder_;
  bool good_ = true;
};

}  // namespace
}  // namespace monarch

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: journal-corpus FOLDER\n");
    return 2;
  }
  using namespace monarch;
  const JournalWriterOptions small{.segment_records = 4, .snapshot_every = 6, .history_bytes = 0};
  Corpus corpus{argv[1]};
  corpus.add("empty", {});
  corpus.add_with_faults("one-life", lives(1, {.batches = 4, .per_batch = 2, .writer = {}}));
  corpus.add_with_faults("segments", lives(1, {.batches = 8, .per_batch = 1, .writer = {.segment_records = 3}}));
  corpus.add_with_faults("three-lives", lives(3, {.batches = 2, .per_batch = 2, .writer = {}}));
  corpus.add_with_faults("snapshot", lives(1, {.batches = 8, .per_batch = 2, .writer = small}));
  corpus.add_with_faults("snapshots-and-lives", lives(3, {.batches = 5, .per_batch = 2, .writer = small}));
  corpus.add_with_faults("poisoned", poisoned());
  corpus.add("unknown-type", with_unknown_type(99));
  corpus.add("unknown-skippable-type", with_unknown_type(kSkippableBit | 99U));
  return corpus.good() ? 0 : 1;
}
