// The journal's reader on any bytes. What it accepts has records without a hole, and a supervisor can go on from it:
// the journal that it leaves reads cleanly, with what was there and the new term's record behind it.
//
// Thread: main, alone.

#include <cstdint>
#include <memory>
#include <string_view>

#include "supervisor/journal/journal_contents.h"
#include "supervisor/journal/journal_reader.h"
#include "supervisor/journal/recover.h"
#include "tests/fuzz/journal_image.h"
#include "tests/supervisor/journal/fake_journal_files.h"
#include "transport/base/assert.h"

namespace monarch {
namespace {

void check_records(const JournalContents& contents) {
  std::uint64_t before = contents.snapshot ? contents.snapshot->lsn : 0;
  for (const Record& record : contents.records) {
    MONARCH_ASSERT(record.lsn > before);  // types that are passed over leave gaps
    before = record.lsn;
  }
  MONARCH_ASSERT(before <= contents.last_lsn);
  MONARCH_ASSERT(contents.proven_lsn <= contents.last_lsn);
  MONARCH_ASSERT(contents.unproven.size() == contents.last_lsn - contents.proven_lsn);
}

void check_recovery(const JournalImage& image, const JournalContents& found) {
  testing::FakeJournalFiles files;
  const auto put = [&](const std::string& name, const std::string& bytes) {
    std::unique_ptr<JournalFile> file;
    MONARCH_ASSERT(files.create(name, file) == 0 && file->write(bytes) == 0);
  };
  if (image.snapshot) put(std::string(kSnapshotName), *image.snapshot);
  for (const auto& segment : image.segments) put(segment.name, segment.bytes);
  const auto recovered = recover_journal(files, {});
  MONARCH_ASSERT(recovered.ok());
  const auto again = read_journal(files);
  MONARCH_ASSERT(again.ok());
  MONARCH_ASSERT(again->end == JournalEnd::kClean);
  MONARCH_ASSERT(again->last_lsn == found.last_lsn + 1);
  MONARCH_ASSERT(again->last_term.value() == found.last_term.value() + 1);
  MONARCH_ASSERT(again->records.size() == found.records.size() + 1);
}

}  // namespace
}  // namespace monarch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const monarch::JournalImage image = monarch::image_from({reinterpret_cast<const char*>(data), size});
  const monarch::JournalContents contents = monarch::parse_journal(image);
  if (contents.usable()) {
    monarch::check_records(contents);
    monarch::check_recovery(image, contents);
  } else {
    MONARCH_ASSERT(!contents.why.empty() && !contents.end_file.empty());
  }
  return 0;
}
