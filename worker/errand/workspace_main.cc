#include "worker/errand/workspace_main.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/files/directories.h"
#include "transport/base/files/tree_manifest.h"
#include "transport/base/marks.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/process/job_marks.h"
#include "worker/core/environment.h"
#include "worker/core/host_places.h"
#include "worker/errand/blob_cache.h"
#include "worker/errand/print.h"
#include "worker/errand/tree_builder.h"

extern char** environ;

namespace monarch {

namespace {

constexpr std::size_t kInputReadBytes = 256U << 10U;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kStateFolders = 4;  // monarch/hosts/<job>/<host>
constexpr Duration kTellEvery = Duration::seconds(1);
constexpr std::string_view kTree = "tree ";

// What comes in, as it is asked for.
class Input {
 public:
  Result<std::string> line() {
    std::size_t end = bytes_.find('\n');
    while (end == std::string::npos) {
      if (bytes_.size() > kLineBytes) return Error{ErrorCode::kInvalid, "a line of the input is too long"};
      MONARCH_TRY(more());
      end = bytes_.find('\n');
    }
    std::string line = bytes_.substr(0, end);
    bytes_.erase(0, end + 1);
    return line;
  }

  // At least one byte, at most `most`.
  Result<std::string> some(std::uint64_t most) {
    if (bytes_.empty()) MONARCH_TRY(more());
    if (bytes_.size() <= most) return std::exchange(bytes_, {});
    std::string first = bytes_.substr(0, most);
    bytes_.erase(0, most);
    return first;
  }

 private:
  Status more() {
    std::string piece(kInputReadBytes, '\0');
    for (;;) {
      const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(ErrorCode::kGone, "reading standard input", errno);
      if (got == 0) return Error{ErrorCode::kGone, "the input ended midway"};
      bytes_.append(piece, 0, static_cast<std::size_t>(got));
      return {};
    }
  }

  std::string bytes_;
};

class Making {
 public:
  explicit Making(std::string state_directory) : state_directory_(std::move(state_directory)) {}

  // How many bytes came.
  Result<std::uint64_t> run() {
    MONARCH_ASSIGN(const std::string manifest, read_manifest());
    MONARCH_ASSIGN(const TreeManifest tree, parse_manifest(manifest));
    const std::string hash = sha256(manifest);
    errno = 0;
    if (const Status made = make_own_directories(state_directory_, kStateFolders); !made.ok()) {
      if (made.error().code == ErrorCode::kInvalid) return made.error();
      Error error = disk_error("", errno);
      error.message = made.error().message;
      return error;
    }
    if (has_tree(state_directory_, hash)) {
      print(STDOUT_FILENO, "end\n");
      return std::uint64_t{0};
    }
    MONARCH_ASSIGN(const std::unique_ptr<BlobCache> cache, BlobCache::open(environment_from(environ)));
    MONARCH_TRY(fetch(tree, *cache));
    const TreeOrder order{
        .tree = tree, .hash = hash, .state_directory = state_directory_, .on_turn = [this] { tell(); }};
    Status built = build_tree(order, *cache);
    if (!built.ok() && built.error().code == ErrorCode::kNotFound) {
      // What was kept was gone or damaged, and is asked for. Once: a disk that damages it again will not do.
      MONARCH_TRY(fetch(tree, *cache));
      built = build_tree(order, *cache);
    }
    MONARCH_TRY(built);
    BlobCache::sweep(environment_from(environ));
    (void)cache->trim(BlobCache::kBytes, ::time(nullptr));
    return came_;
  }

 private:
  Result<std::string> read_manifest() {
    MONARCH_ASSIGN(const std::string line, input_.line());
    std::size_t size = 0;
    const char* const end = line.data() + line.size();
    if (!line.starts_with(kTree)) return Error{ErrorCode::kInvalid, text("`", printable(line), "` announces no tree")};
    const auto [stopped, error] = std::from_chars(line.data() + kTree.size(), end, size);
    if (error != std::errc{} || stopped != end || size > TreeManifest::kBytes) {
      return Error{ErrorCode::kInvalid, text("`", printable(line), "` announces no tree")};
    }
    std::string manifest;
    while (manifest.size() < size) {
      MONARCH_ASSIGN(const std::string piece, input_.some(size - manifest.size()));
      manifest += piece;
    }
    return manifest;
  }

  Status fetch(const TreeManifest& tree, BlobCache& cache) {
    const std::vector<TreeBlob> blobs = blobs_of(tree);
    std::vector<const TreeBlob*> needed;
    std::string words;
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      if (cache.has(blobs[i])) continue;
      needed.push_back(&blobs[i]);
      words += text("need ", i, '\n');
    }
    print(STDOUT_FILENO, words + "end\n");
    for (const TreeBlob* blob : needed) {
      MONARCH_TRY(cache.begin());
      for (std::uint64_t left = blob->size; left > 0;) {
        MONARCH_ASSIGN(const std::string piece, input_.some(left));
        MONARCH_TRY(cache.add(piece));
        left -= piece.size();
        came_ += piece.size();
        tell();
      }
      MONARCH_TRY(cache.finish(*blob));
    }
    return cache.keep();
  }

  void tell() {
    const Instant now = boot_now();
    if (now - told_ < kTellEvery) return;
    told_ = now;
    print(STDOUT_FILENO, text("at ", came_, '\n'));
  }

  std::string state_directory_;
  Input input_;
  std::uint64_t came_ = 0;
  Instant told_ = boot_now();
};

std::string_view word_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kBusy: return "disk-full";
    case ErrorCode::kUnsupported: return "not-writable";
    case ErrorCode::kInvalid: return "refused";
    case ErrorCode::kGone: return "short";
    case ErrorCode::kNotFound:
    case ErrorCode::kTimeout:
    case ErrorCode::kDevice:
    case ErrorCode::kInternal: return "other";
  }
  return "other";
}

// One line.
std::string failed(const Error& error) {
  std::string words = printable(error.message);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return text("failed ", word_of(error), ' ', words, '\n');
}

}  // namespace

int workspace_main(const std::vector<std::string>& arguments) {
  const bool marked = arguments.size() == 6 && arguments[0] == kJobArgument && is_job_uuid(arguments[1]) &&
                      arguments[2] == kHostArgument && arguments[4] == kJobIdArgument;
  if (!marked) {
    print(STDOUT_FILENO,
          failed({ErrorCode::kInvalid, "usage: monarch-worker workspace --job UUID --host NAME --job-id ID"}));
    return kExitUsage;
  }
  const auto places = host_places(environment_from(environ), arguments[5], arguments[3]);
  if (!places.ok()) {
    print(STDOUT_FILENO, failed(places.error()));
    return kExitFailed;
  }
  const auto came = Making(places->state_directory).run();
  print(STDOUT_FILENO, came.ok() ? text("built ", *came, '\n') : failed(came.error()));
  return came.ok() ? 0 : kExitFailed;
}

}  // namespace monarch
