#include "supervisor/away/start_there.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/client/link/endpoint.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/shell_values.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/talk/remote_conversation.h"
#include "supervisor/spec/hosts/network_names.h"
#include "transport/base/exit_code.h"
#include "transport/base/files/remove_tree.h"
#include "transport/base/text.h"
#include "transport/messages/launch.h"
#include "transport/process/hidden_memory.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame_stream.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/seqpacket_socket.h"

extern char** environ;

namespace monarch {

namespace {

// How long the machine that launches may take to say what is to be started, and to read the last that is said to it.
constexpr Duration kAskDeadline = Duration::seconds(30);
constexpr Duration kFarewellDeadline = Duration::seconds(5);

StartedThere refused(int exit_code, std::string why) { return {.exit_code = exit_code, .error = std::move(why)}; }

bool is_variable(const std::string& name, const std::string& value) {
  return !name.empty() && name.find('=') == std::string::npos && name.find('\0') == std::string::npos &&
         value.find('\0') == std::string::npos;
}

// A login's own variables of that name are not the submitting shell's.
void drop_shell_values() {
  std::vector<std::string> names;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view variable(*line);
    if (variable.starts_with(kShellPrefix)) names.emplace_back(variable.substr(0, variable.find('=')));
  }
  for (const std::string& name : names) (void)::unsetenv(name.c_str());
}

Status take_shell_values(const StartThere& wanted) {
  drop_shell_values();
  for (const auto& [name, value] : wanted.shell) {
    if (!is_variable(name, value))
      return Error{ErrorCode::kInvalid, "a variable of the shell has no name that can be one"};
    if (::setenv(text(kShellPrefix, name).c_str(), value.c_str(), 1) != 0) return errno_error("setenv", errno);
  }
  return {};
}

// Empty: nothing stands in the way.
std::string objection_to_address(const StartThere& wanted, const std::string& address) {
  if (!wanted.needs_address) return "";
  const std::string help = ": write control.address, an address of this host that the other hosts reach";
  if (address.empty()) return text("sshd does not say by which address this host is reached", help);
  if (numeric_address(address) == NumericAddress::kLoopback) {
    return text("this host is reached at ", address, ", which on each other host means that host itself", help);
  }
  return "";
}

class StartThereProcess {
 public:
  explicit StartThereProcess(const StartThereOptions& options) : options_(options) {}
  int run();

 private:
  Status open();
  void on_frame(Frame frame);
  void on_start(const StartThere& wanted);
  StartedThere start(const StartThere& wanted);
  Status connect(const std::string& socket);
  void leave(int exit_code);

  const StartThereOptions& options_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<FrameStream> stream_;           // to the machine that launches
  std::unique_ptr<SeqpacketChannel> supervisor_;  // from its start on
  std::string socket_;                            // of the supervisor
  std::optional<FairTimer> patience_;
  bool asked_ = false;
  bool leaving_ = false;
  int exit_code_ = 0;
};

Status StartThereProcess::open() {
  MONARCH_ASSIGN(loop_, EventLoop::create());
  UniqueFd input(::fcntl(options_.input, F_DUPFD_CLOEXEC, 3));
  UniqueFd output(::fcntl(options_.output, F_DUPFD_CLOEXEC, 3));
  if (!input.valid() || !output.valid()) return errno_error("fcntl F_DUPFD_CLOEXEC", errno);
  const std::string greeting = text(kProgramGreeting, "\n");
  if (::write(output.get(), greeting.data(), greeting.size()) != static_cast<ssize_t>(greeting.size())) {
    return errno_error("greeting", errno);
  }
  MONARCH_ASSIGN(stream_, FrameStream::create(*loop_, std::move(input), std::move(output),
                                              {.on_frame = [this](Frame frame) { on_frame(std::move(frame)); },
                                               .on_closed = [this](const Error&) { leave(0); }}));
  patience_.emplace(*loop_);
  patience_->start(kAskDeadline, [this](const std::string&) { leave(kExitInternal); });
  return {};
}

void StartThereProcess::on_frame(Frame frame) {
  if (asked_) {
    if (supervisor_ && !supervisor_->send(frame).ok()) leave(kExitInternal);
    return;
  }
  const Status taken = route(frame.header, frame.payload,
                             when<StartThere>(
                                 [&](const StartThere& wanted) {
                                   asked_ = true;
                                   patience_.reset();
                                   on_start(wanted);
                                 },
                                 limits::kSeqpacketPayloadBytes));
  if (!taken.ok()) leave(kExitInternal);
}

void StartThereProcess::on_start(const StartThere& wanted) {
  StartedThere started = start(wanted);
  if (started.exit_code == 0) {
    const Status connected = connect(socket_);
    // It ends by itself: nobody comes to launch its hosts.
    if (!connected.ok()) started = refused(kExitInternal, connected.error().message);
  }
  const int exit_code = started.exit_code;
  (void)stream_->send(frame_of(started));  // its end is told by the loop
  if (exit_code != 0) leave(exit_code);
}

StartedThere StartThereProcess::start(const StartThere& wanted) {
  if (wanted.version != MONARCH_VERSION) {
    return refused(kExitInternal, text("this is monarch " MONARCH_VERSION ", asked by ", printable(wanted.version)));
  }
  const std::string address = reached_address(options_.ssh_connection);
  if (const std::string objection = objection_to_address(wanted, address); !objection.empty()) {
    return refused(kExitUsage, objection);
  }
  if (const Status taken = take_shell_values(wanted); !taken.ok()) return refused(kExitInternal, taken.error().message);
  const auto binaries = find_binaries(options_.monarch, options_.worker);
  if (!binaries.ok()) return refused(kExitInternal, binaries.error().message);
  const auto made = make_job_of_id(wanted.job_id, {.spec = wanted.spec, .spec_directory = wanted.spec_directory});
  if (!made.ok()) return refused(kExitJournal, made.error().message);
  const StartFailure failure = start_supervisor(made->job, *binaries);
  drop_shell_values();
  if (failure.exit_code != 0) {
    // The machine that asked keeps what is said of it.
    (void)remove_tree(made->state.jobs().fd(), made->job.id);
    return {.exit_code = failure.exit_code, .error = failure.message, .log_tail = failure.log_tail};
  }
  const auto json = made->job.directory.read_file(kEndpointFile, kEndpointBytes);
  const auto endpoint = json.ok() ? parse_endpoint(*json) : Result<Endpoint>(json.error());
  if (!endpoint.ok()) return refused(kExitInternal, endpoint.error().message);
  socket_ = endpoint->socket;
  return {.directory = made->job.directory.path(), .address = address};
}

Status StartThereProcess::connect(const std::string& socket) {
  MONARCH_ASSIGN(UniqueFd fd, connect_seqpacket(socket));
  MONARCH_ASSIGN(supervisor_, SeqpacketChannel::create(*loop_, std::move(fd),
                                                       {.on_frame =
                                                            [this](Frame frame, std::vector<UniqueFd>) {
                                                              if (!stream_->send(frame).ok()) leave(kExitInternal);
                                                            },
                                                        .on_closed = [this](const Error&) { leave(0); }}));
  return supervisor_->send(frame_of(LauncherHello{.name = "the machine that started the job"}));
}

// When what was said has left.
void StartThereProcess::leave(int exit_code) {
  if (std::exchange(leaving_, true)) return;
  exit_code_ = exit_code;
  (void)loop_->at(loop_->now() + kFarewellDeadline, [this] { loop_->stop(); });
}

int StartThereProcess::run() {
  if (const Status opened = open(); !opened.ok()) {
    const std::string line = text("monarch: ", opened.error().message, "\n");
    (void)!::write(STDERR_FILENO, line.data(), line.size());  // there is nobody else to tell
    return kExitInternal;
  }
  while (!loop_->stopped() && !(leaving_ && stream_->pending_bytes() == 0)) loop_->run_once();
  return exit_code_;
}

}  // namespace

std::string reached_address(const std::string& ssh_connection) {
  std::string rest = ssh_connection;
  std::vector<std::string> words;
  while (!rest.empty()) {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    words.push_back(rest.substr(0, blank));
    rest.erase(0, blank + 1);
  }
  constexpr std::size_t kWords = 4;
  if (words.size() != kWords) return "";
  const NumericAddress kind = numeric_address(words[2]);
  return kind == NumericAddress::kNone || kind == NumericAddress::kUnspecified ? "" : words[2];
}

int start_there(const StartThereOptions& options) {
  hide_memory();  // values of somebody's shell are in it
  return StartThereProcess(options).run();
}

}  // namespace monarch
