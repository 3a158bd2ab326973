// Feeds every file of the folders and files given as arguments to a fuzz target, so that each input that once mattered
// is tried in the default run, without libFuzzer. It fails when there was nothing to feed: a corpus that moved must not
// pass. Thread: main, alone.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

bool replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    std::fprintf(stderr, "replay: cannot read %s\n", path.c_str());
    return false;
  }
  // A copy of exactly this size on the heap: a read past its end is seen by the address sanitizer.
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::printf("replay: %s (%zu bytes)\n", path.c_str(), input.size());
  (void)std::fflush(
      stdout);  // the name of a crashing input must be out before it crashes; a failed write changes nothing
  (void)LLVMFuzzerTestOneInput(input.data(), input.size());  // 0, or -1: not for the corpus; both are fine
  return true;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& argument) {
  std::error_code error;
  if (!std::filesystem::is_directory(argument, error)) return {argument};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argument)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t fed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::filesystem::path& path : files_of(argv[i])) {
      if (!replay(path)) return 1;
      ++fed;
    }
  }
  if (fed == 0) {
    std::fprintf(stderr, "replay: nothing to feed; give the folder of a corpus\n");
    return 1;
  }
  std::printf("replay: %zu inputs\n", fed);
  return 0;
}
