#include "supervisor/journal/recover.h"

#include <utility>

#include "supervisor/journal/journal_reader.h"
#include "transport/base/text.h"

namespace monarch {

Result<RecoveredJournal> recover_journal(JournalFiles& files, const RecoverOptions& options) {
  RecoveredJournal recovered;
  MONARCH_ASSIGN(recovered.contents, read_journal(files));
  if (!recovered.contents.usable()) {
    const bool another = recovered.contents.end == JournalEnd::kUnsupported;
    return Error{another ? ErrorCode::kUnsupported : ErrorCode::kInvalid,
                 text("the journal cannot be continued: ", recovered.contents.describe_end())};
  }
  MONARCH_ASSIGN(recovered.writer, JournalWriter::create(files, recovered.contents, options.writer));
  recovered.term = Term(recovered.contents.last_term.value() + (options.forced ? kForcedTermStep : 1));
  const AppendRecord term{RecordType::kTerm, recovered.term, options.wall, options.now, {}};
  const Result<std::uint64_t> appended = recovered.writer->append(term);
  if (!appended.ok()) return appended.error();
  std::vector<FileBeside> beside = options.beside;
  if (recovered.writer->flush(beside) != JournalHealth::kGood) return recovered.writer->trouble();
  for (const FileBeside& file : beside) {
    if (file.failure != 0) return errno_error(text("write ", file.name), file.failure);
  }
  return recovered;
}

}  // namespace monarch
