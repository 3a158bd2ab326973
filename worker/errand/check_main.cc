#include "worker/errand/check_main.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/messages/check.h"
#include "transport/messages/strike.h"
#include "transport/process/door.h"
#include "transport/process/job_marks.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"
#include "worker/core/environment.h"
#include "worker/drill/strike.h"
#include "worker/drill/targets.h"
#include "worker/errand/fault_rights.h"
#include "worker/errand/folder_facts.h"
#include "worker/errand/host_facts.h"

extern char** environ;

namespace monarch {

namespace {

constexpr Duration kFirstWord = Duration::seconds(60);  // of the doctor's; a request says how long to live
constexpr std::size_t kRequestReadBytes = 65'536;

WorkerThere look_for(const WorkerMarks& marks) {
  WorkerThere found;
  const std::vector<ProcessEntry> there = processes_of_job({.uuid = marks.job_uuid, .host = marks.host});
  for (const ProcessEntry& entry : there) {
    ++found.processes;
    const auto worker = worker_mark(entry.pid);
    if (!worker || !worker->keeper || worker->uuid != marks.job_uuid) continue;
    ++found.keepers;
    found.stopped += entry.state == 'T' || entry.state == 't' ? 1U : 0U;
  }
  found.ranks = ranks_among(there, marks.job_uuid);
  return found;
}

class Check {
 public:
  Check() : environment_(environment_from(environ)), until_(boot_now() + kFirstWord) {}
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;
  ~Check() {
    for (const auto& [order, patience] : written_) remove_token(order, patience);
  }

  int run() {
    for (;;) {
      auto request = next_request();
      if (!request.ok()) return say(request.error().message);
      if (!*request) return 0;
      const WallTime received = wall_now();
      auto decoded = decode_payload<CheckRequest>(**request, kCheckBytes);
      if (!decoded.ok()) return say(decoded.error().message);
      CheckAnswer answer = answer_to(*decoded);
      answer.received = received;
      answer.answered = wall_now();
      if (!write_all(encode_piece(encode_payload(answer)))) return 0;  // nobody listens any more
    }
  }

 private:
  static int say(const std::string& message) {
    const std::string line = text("monarch-worker check: ", message, '\n');
    (void)!::write(STDERR_FILENO, line.data(), line.size());  // a closed end wants none
    return kExitFailed;
  }

  // Nothing: the doctor has no more, or its time is up.
  Result<std::optional<std::string>> next_request() {
    for (;;) {
      MONARCH_ASSIGN(auto piece, take_piece(bytes_));
      if (piece) return piece;
      const Duration left = until_ - boot_now();
      if (left <= Duration::zero()) return std::optional<std::string>();
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (::poll(&input, 1, static_cast<int>(left.count_milliseconds()) + 1) != 1) continue;
      char buffer[kRequestReadBytes];
      const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::optional<std::string>();
      bytes_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  static bool write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return true;
  }

  CheckAnswer answer_to(const CheckRequest& request) {
    until_ = boot_now() + request.life;
    CheckAnswer answer;
    if (request.first_door && !door_) {
      auto opened = Door::open(request.words, *request.first_door, request.last_door);
      opened.ok() ? static_cast<void>(door_ = std::move(*opened))
                  : static_cast<void>(answer.error = opened.error().message);
    }
    answer.door = door_ ? door_->port() : std::uint16_t{0};
    if (request.look) answer.facts = host_facts(request, environment_);
    answer.calls = knock(request.calls, request.words, request.patience);
    for (const FolderNeed& need : request.folders) {
      if (need.written) remove_old_tokens(need.path, request.patience);
      answer.folders.push_back(look_at_folder(need, request.patience));
    }
    for (const ProgramNeed& need : request.programs) answer.programs.push_back(find_program(need, environment_));
    for (const TokenOrder& order : request.write) {
      answer.written.push_back(write_token(order, request.patience));
      if (answer.written.back().error.empty()) written_.emplace_back(order, request.patience);
    }
    for (const TokenOrder& order : request.read) answer.read.push_back(read_token(order, request.patience));
    if (request.strike || request.undo) answer.struck = strike(request);
    if (request.rights) answer.rights = fault_rights();
    if (request.worker && is_job_uuid(request.worker->job_uuid)) answer.worker = look_for(*request.worker);
    return answer;
  }

  // One at a time: the last one is taken back first.
  StrikeSeen strike(const CheckRequest& request) {
    const Status undone = strike_ ? strike_->undo(request.patience) : Status();
    const std::optional<bool> felt = strike_ ? strike_->seen().felt : std::nullopt;
    strike_.reset();
    if (!undone.ok()) return {.error = undone.error().message, .struck = {}, .felt = felt};
    if (!request.strike) return {.error = {}, .struck = {}, .felt = felt};
    if (request.undo) {
      const Status goes_on = Strike::let_go_on(*request.strike, request.patience);
      return {.error = goes_on.ok() ? "" : goes_on.error().message, .struck = {}};
    }
    auto begun = Strike::begin(*request.strike, request.patience);
    if (!begun.ok()) return {.error = begun.error().message, .struck = {}};
    strike_ = std::move(*begun);
    return strike_->seen();
  }

  Environment environment_;
  Instant until_;
  std::string bytes_;  // that came and are not understood yet
  std::unique_ptr<Door> door_;
  std::unique_ptr<Strike> strike_;
  std::vector<std::pair<TokenOrder, Duration>> written_;
};

}  // namespace

int check_main() {
  // A connection that breaks must not leave a token behind: its end is read.
  (void)::signal(SIGTERM, SIG_IGN);
  return Check().run();
}

}  // namespace monarch
