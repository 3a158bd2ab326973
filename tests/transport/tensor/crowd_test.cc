// More readers than a publisher has places for: it is a process of its own here, with a limit of open files of its own,
// whose own thread opens files all the while.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/tensor/tensor_gang.h"
#include "transport/base/sanitizers.h"

namespace monarch::tensor {
namespace {

const LinkWays kByTcp{.machine = {}, .shm = false, .verbs = false, .tcp = true};

std::size_t open_in(pid_t process) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(text("/proc/", process, "/fd")))
    ++count;
  return count;
}

// A gang of one rank that publishes a version once it is told to, and lives until it is asked how its own open() went.
class Trainer {
 public:
  Trainer(const Matrix& matrix, rlim_t files) {
    std::array<int, 2> down{};
    std::array<int, 2> up{};
    EXPECT_EQ(::pipe2(down.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(up.data(), O_CLOEXEC), 0);
    child_ = ::fork();
    if (child_ == 0) {
      (void)::close(down[1]);
      live(matrix, files, down[0], up[1]);
    }
    (void)::close(down[0]);
    (void)::close(up[1]);
    stop_ = UniqueFd(down[1]);
    says_ = UniqueFd(up[0]);
    card_ = parse_card(read_until('\0')).value();
  }
  ~Trainer() {
    stop_.reset();
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
  }

  void publish() { EXPECT_EQ(::write(stop_.get(), "p", 1), 1); }
  // Connections, its files, and what else is open there.
  std::size_t open_files() const { return open_in(child_); }
  finder_word::Found found() const { return {.gang = 0, .rank = 0, .generation = 1, .card = card_}; }
  // "7 of 900": of the files that it has tried to open since, how many it could not.
  std::string failed_opens() {
    stop_.reset();
    return read_until('\0');
  }

 private:
  [[noreturn]] static void live(const Matrix& matrix, rlim_t files, int stop, int says) {
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = files;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(1);
    std::string words;
    {
      TensorGang gang(1, 1);
      say(says, card_text(gang.card()));
      std::uint64_t tried = 0;
      std::uint64_t failed = 0;
      pollfd waiting{stop, POLLIN, 0};
      for (;;) {
        char word = 0;
        const bool told = ::poll(&waiting, 1, 1) == 1;
        if (told && ::read(stop, &word, 1) == 0) break;
        if (told) gang.publish(matrix, 1);
        std::vector<UniqueFd> own;
        for (rlim_t i = 0; i < files / 4; ++i, ++tried) {
          own.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
          if (!own.back().valid()) ++failed;
        }
      }
      words = text(failed, " of ", tried);
    }
    say(says, words);
    ::_exit(0);
  }

  static void say(int fd, const std::string& words) {
    if (::write(fd, words.c_str(), words.size() + 1) != static_cast<ssize_t>(words.size() + 1)) ::_exit(2);
  }

  std::string read_until(char end) {
    std::string words;
    for (char next = 0; ::read(says_.get(), &next, 1) == 1 && next != end;) words += next;
    return words;
  }

  pid_t child_ = -1;
  UniqueFd stop_;
  UniqueFd says_;
  Card card_;
};

bool has_none_failed(const std::string& words) { return words.starts_with("0 of ") && words != "0 of 0"; }

// Each wants more than one stream takes, and four for each are as many as the process may have four times over.
TEST(Crowd, OfReadersLeavesTheTrainerItsFiles) {
  constexpr int kReaders = kSanitized ? 64 : 256;
  constexpr std::size_t kPlaces = 42;  // of those who wait for a version
  const Matrix matrix{1'024, 1'024};
  const std::vector<std::int32_t> right = matrix.part(1, whole({1'024, 1'024}));
  Trainer trainer(matrix, 256);
  std::atomic<int> whole_ones{0};
  std::vector<std::thread> readers;
  const std::size_t before = trainer.open_files();
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      ColumnReader reader(matrix, 0, 1'024, kByTcp);
      reader.finds(trainer.found());
      const PullOutcome outcome = reader.run({}, Duration::seconds(120));
      const auto* const failed = std::get_if<PullFailure>(&outcome);
      EXPECT_EQ(failed, nullptr) << failed->text;
      if (reader.memory == right) ++whole_ones;
    });
  }
  const Instant patience = boot_now() + Duration::seconds(60);
  while (trainer.open_files() < before + kPlaces && boot_now() < patience) std::this_thread::yield();
  trainer.publish();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(whole_ones, kReaders);
  const std::string opens = trainer.failed_opens();
  EXPECT_TRUE(has_none_failed(opens)) << opens << " files of its own could not be opened";
}

// Whoever keeps a link for his next pull lets go of it for others, and is linked anew then.
TEST(Crowd, OfReadersWhoStayTakesTurns) {
  const Matrix matrix{8, 8};
  Trainer trainer(matrix, 64);
  trainer.publish();
  std::vector<std::unique_ptr<ColumnReader>> readers;
  for (int i = 0; i < 12; ++i) {
    readers.push_back(std::make_unique<ColumnReader>(matrix, 0, 8, LinkWays{}));
    readers.back()->finds(trainer.found());
    (void)pulled(readers.back()->run({}, Duration::seconds(60)));
  }
  for (const std::size_t again : {0U, 11U}) (void)pulled(readers[again]->run({}, Duration::seconds(60)));
}

TEST(Crowd, SaysThatThereIsNoPlaceWhereAPullTakesTooLong) {
  const Matrix matrix{8, 8};
  Trainer trainer(matrix, 64);
  trainer.publish();
  // They wait for a version that does not come, and so have their places.
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 10; ++i) {
    others.emplace_back([&] {
      ColumnReader reader(matrix, 0, 8, LinkWays{});
      reader.finds(trainer.found());
      const PulledVersion seen = pulled(reader.run({}, Duration::seconds(60))).version;
      while (!done) EXPECT_EQ(failure(reader.run(seen, Duration::milliseconds(300))).how, PullEnd::kTimeout);
    });
  }
  std::string said;
  const Instant patience = boot_now() + Duration::seconds(60);
  while (said.find("ulimit -n") == std::string::npos && boot_now() < patience) {
    ColumnReader reader(matrix, 0, 8, LinkWays{});
    reader.finds(trainer.found());
    const PullOutcome outcome = reader.run({}, Duration::milliseconds(100));
    if (const auto* const failed = std::get_if<PullFailure>(&outcome)) said = failed->text;
  }
  done = true;
  for (std::thread& other : others) other.join();
  const std::string begin =
      "weights of trainer: nothing whole within 100ms; trainer/0 refuses a link: it has no place for one more link: "
      "readers have ";
  EXPECT_EQ(said.substr(0, begin.size()), begin);
  EXPECT_NE(said.find(", and it may have 64 open files (ulimit -n)"), std::string::npos) << said;
}

}  // namespace
}  // namespace monarch::tensor
