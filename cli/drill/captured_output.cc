#include "cli/drill/captured_output.h"

#include <dirent.h>

#include <memory>
#include <optional>

#include "supervisor/client/output/log_file_reader.h"
#include "supervisor/client/output/output_follower.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kReadBytes = 1U << 20U;
constexpr std::size_t kLongestLine = 64U << 10U;  // of a longer one the beginning is looked at

// The last line of the file that the pattern takes something of.
std::optional<std::string> last_captured(const std::string& path, const LinePattern& pattern) {
  const auto reader = LogFileReader::open(path);
  if (!reader.ok()) return std::nullopt;
  std::optional<std::string> captured;
  std::string line;
  const auto look = [&] {
    if (auto group = pattern.first_group(line)) captured = std::move(group);
    line.clear();
  };
  for (std::uint64_t offset = reader->first(); offset < reader->end();) {
    const std::string piece = reader->read(offset, kReadBytes);
    if (piece.empty()) break;
    offset += piece.size();
    for (const char byte : piece) {
      if (byte == '\n') {
        look();
      } else if (line.size() < kLongestLine) {
        line += byte;
      }
    }
  }
  if (!line.empty()) look();
  return captured;
}

struct CloseFolder {
  void operator()(DIR* folder) const { (void)::closedir(folder); }
};

}  // namespace

CapturedOutput captured_output(const JobView& job, const JobSpec& spec, const LinePattern& pattern) {
  CapturedOutput captured;
  for (const MeshSpec& mesh : spec.meshes) {
    const std::string path = text(job.log_directory(), "/", mesh.name);
    std::map<std::uint32_t, std::uint64_t> newest;  // of each rank the generation whose words these are
    const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
    if (folder == nullptr) continue;
    while (const dirent* const entry = ::readdir(folder.get())) {
      const auto name = parse_output_file_name(entry->d_name);
      if (!name || name->stream != OutputStream::kStdout) continue;
      const std::uint32_t rank = name->rank.value();
      if (const auto known = newest.find(rank); known != newest.end() && known->second > name->generation) continue;
      const auto words = last_captured(text(path, "/", entry->d_name), pattern);
      if (!words) continue;
      newest[rank] = name->generation;
      captured[{mesh.name, rank}] = *words;
    }
  }
  return captured;
}

std::string difference_of(const CapturedOutput& drilled, const CapturedOutput& undisturbed) {
  std::string first;
  std::size_t more = 0;
  const auto note = [&](const std::pair<std::string, std::uint32_t>& rank, const std::string& words) {
    if (first.empty()) {
      first = text(rank.first, "/", rank.second, ": ", words);
    } else {
      ++more;
    }
  };
  for (const auto& [rank, words] : undisturbed) {
    const auto found = drilled.find(rank);
    if (found == drilled.end()) {
      note(rank, text("it wrote no such line, and undisturbed ", printable(words)));
    } else if (found->second != words) {
      note(rank, text(printable(found->second), ", and undisturbed ", printable(words)));
    }
  }
  for (const auto& [rank, words] : drilled) {
    if (!undisturbed.contains(rank)) note(rank, text(printable(words), ", and undisturbed no such line"));
  }
  return more > 0 ? text(first, ", and of ", more, " ranks more") : first;
}

}  // namespace monarch
