// Cut: packets that a table of nft's drops.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "worker/core/strike_plan.h"
#include "worker/drill/effect.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

constexpr std::size_t kMostAnswer = 16'384;
constexpr Duration kPacketLook = Duration::milliseconds(50);

[[noreturn]] void become_nft(std::vector<const char*> arguments, int input, int output) {
  std::vector<char*> argv{const_cast<char*>("nft")};
  for (const char* argument : arguments) argv.push_back(const_cast<char*>(argument));
  argv.push_back(nullptr);
  (void)::dup2(input, STDIN_FILENO);
  (void)::dup2(output, STDERR_FILENO);
  (void)::dup2(output, STDOUT_FILENO);
  for (const char* path : {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"}) ::execv(path, argv.data());
  ::_exit(kExitNotFound);
}

// nft(8), with `script` as its input: what it said, which is why where it failed.
Result<std::string> run_nft(const std::vector<const char*>& arguments, std::string_view script = "") {
  int input[2];
  int words[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  UniqueFd read_end(input[0]);
  UniqueFd write_end(input[1]);
  if (::pipe2(words, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
  const UniqueFd heard(words[0]);
  UniqueFd said(words[1]);
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork", errno);
  if (child == 0) become_nft(arguments, read_end.get(), said.get());
  read_end.reset();
  said.reset();
  while (!script.empty()) {
    const ssize_t wrote = ::write(write_end.get(), script.data(), script.size());
    if (wrote <= 0) break;  // it tells why by its status
    script.remove_prefix(static_cast<std::size_t>(wrote));
  }
  write_end.reset();
  std::string answer;
  char buffer[1'024];
  for (ssize_t got = 0; (got = ::read(heard.get(), buffer, sizeof buffer)) > 0;) {
    if (answer.size() < kMostAnswer) answer.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return answer;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNotFound)
    return Error{ErrorCode::kUnsupported, "there is no nft (nftables)"};
  return Error{ErrorCode::kUnsupported, text("nft: ", printable(answer.substr(0, 300)))};
}

class Cut final : public Effect {
 public:
  Cut(std::string table, std::string script) : table_(std::move(table)), script_(std::move(script)) {}

  Status strike(Duration patience, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    MONARCH_TRY(begin());
    Status listed;
    const auto counts = [&] {
      const auto listing = run_nft({"list", "table", "inet", table_.c_str()});
      if (!listing.ok()) listed = listing.error();
      return !listing.ok() || packets_counted(*listing) > 0;
    };
    const bool counted_some = until(counts, patience, kPacketLook);
    MONARCH_TRY(listed);
    if (counted_some) return {};
    return Error{ErrorCode::kTimeout, text("no packet that it is about came by within ", to_text(patience))};
  }

  Status give_back(Duration /*patience*/) override {
    // WARNING: a guard asks before it can know whether the table was made; nft(8) 1.0 has no `destroy`.
    if (is_back_) return {};
    const auto deleted = run_nft({"delete", "table", "inet", table_.c_str()});
    is_back_ = deleted.ok();
    return deleted.ok() ? Status() : Status(deleted.error());
  }

  bool outlives_us() const override { return true; }

 private:
  Status begin() {
    const auto made = run_nft({"-f", "-"}, script_);
    is_back_ = !made.ok();  // a script is taken whole or not at all
    return made.ok() ? Status() : Status(made.error());
  }

  std::string table_;
  std::string script_;
  bool is_back_ = false;  // there is no table of ours
};

}  // namespace

PlannedEffect plan_cut(const StrikeOrder& order) {
  const std::string table = text(kStrikeTables, ::getpid());
  MONARCH_ASSIGN(std::string script, cut_script(order, table));
  return std::unique_ptr<Effect>(std::make_unique<Cut>(table, std::move(script)));
}

}  // namespace monarch
