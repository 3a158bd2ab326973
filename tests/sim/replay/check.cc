#include "tests/sim/replay/check.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tests/sim/replay/replayer.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".recording";

// By seed.
std::map<std::uint64_t, fs::path> recordings_in(const CheckOptions& options) {
  std::map<std::uint64_t, fs::path> found;
  std::error_code ignored;  // a folder that is not there has none
  for (const fs::directory_entry& entry : fs::directory_iterator(options.directory, ignored)) {
    const std::string seed = entry.path().stem().string();
    if (entry.path().extension() != kEnding || !all_digits(seed)) continue;
    const std::uint64_t number = std::stoull(seed);
    if (number >= options.first && number <= options.last) found.emplace(number, entry.path());
  }
  return found;
}

struct Checked {
  std::mutex mutex;
  std::uint64_t steps = 0;
  std::map<std::uint64_t, std::string> differ;  // by seed
};

void check_one(std::uint64_t seed, const fs::path& path, Mutant mutant, Checked& checked) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Result<Recording> recording = decode_recording(bytes);
  const std::optional<std::string> differs =
      recording.ok() ? first_difference(*recording, mutant)
                     : text(path.string(), " is no recording that this tree can read: ", recording.error().message);
  const std::lock_guard lock(checked.mutex);
  if (recording.ok()) checked.steps += recording->steps.size();
  if (differs) checked.differ.emplace(seed, *differs);
}

}  // namespace

Status write_recording(const std::string& directory, const Recording& recording) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return Error{ErrorCode::kInternal, text("making ", directory, ": ", failed.message())};
  const std::string path = text(directory, "/", recording.seed, kEnding);
  std::ofstream file(path, std::ios::binary);
  file << encode_recording(recording);
  file.close();
  if (!file) return Error{ErrorCode::kInternal, text("writing ", path, ": ", std::strerror(errno))};
  return {};
}

int check_recordings(const CheckOptions& options) {
  const std::map<std::uint64_t, fs::path> found = recordings_in(options);
  if (found.empty()) {
    std::fprintf(stderr, "there is no recording of these seeds in %s\n", options.directory.c_str());
    return 2;
  }
  const std::vector<std::pair<std::uint64_t, fs::path>> all(found.begin(), found.end());
  Checked checked;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> enough{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < all.size() && !enough; i = next++) {
      check_one(all[i].first, all[i].second, options.mutant, checked);
      const std::lock_guard lock(checked.mutex);
      if (!checked.differ.empty()) enough = true;  // those before it are being checked, and are waited for
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::clamp(std::thread::hardware_concurrency(), 1U, 16U); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (checked.differ.empty()) {
    std::printf("%zu recordings, %llu steps: no difference\n", all.size(),
                static_cast<unsigned long long>(checked.steps));
    return 0;
  }
  const auto& [seed, how] = *checked.differ.begin();
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), how.c_str());
  return 1;
}

}  // namespace monarch::sim
