// `monarch`: the program is this list of commands, the environment and the terminal; which command runs is decided by
// options.cc.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>
#include <vector>

#include "cli/args/options.h"
#include "cli/args/say.h"
#include "cli/commands.h"
#include "transport/base/exit_code.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<Command> all_commands() {
  return {
      run_command(),
      up_command(),
      attach_command(),
      stop_command(),
      ps_command(),
      status_command(),
      wait_command(),
      logs_command(),
      events_command(),
      signal_command(),
      restart_command(),
      drain_command(),
      undrain_command(),
      retry_command(),
      stacks_command(),
      hold_command(),
      plan_command(),
      validate_command(),
      explain_command(),
      init_command(),
      drill_command(),
      rm_command(),
      doctor_command(),
      completion_command(),
      python_command(),
      version_command(),
      supervise_command(),
      over_ssh_command(),
      follow_command(),
      launch_for_command(),
      supervise_there_command(),
      complete_command(all_commands),
  };
}

std::string own_path() {
  std::array<char, PATH_MAX> buffer{};
  const long size = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

// A closed descriptor of these three would be given to the next file that is opened, and what is said there would end
// up in it.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // It gets this very number, the lowest that is free. If even /dev/null is missing there is nobody to tell.
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

int run_invocation(const Invocation& invocation, Context& context) {
  context.terminal.quiet = invocation.arguments.has("quiet");
  const auto when = parse_colour_when(invocation.arguments.value("color").value_or("auto"));
  if (!when.ok()) {
    say_error(context.terminal, {.id = "E0904", .message = text("--color: ", when.error().message), .help = ""});
    return kExitUsage;
  }
  context.terminal.decide_colours(*when, context.env);
  return invocation.command->run(invocation.arguments, context);
}

int run_monarch(const std::vector<std::string>& line) {
  open_standard_descriptors();
  if (const std::string why = why_stack_is_too_small(); !why.empty()) {
    const std::string words = text("monarch: ", why, "\n");
    (void)!::write(STDERR_FILENO, words.data(), words.size());  // who reads it may be gone
    return kExitInternal;
  }
  const Environment env = Environment::of_this_process(environ);
  Context context{.env = env, .executable = own_path(), .terminal = Terminal::of_this_process(env)};
  context.terminal.decide_colours(ColourWhen::kAuto, context.env);
  // A reader that goes away is told by EPIPE, and the command decides what that means.
  ::signal(SIGPIPE, SIG_IGN);

  OutputLoss loss;
  context.terminal.out_loss = &loss;

  const std::vector<Command> commands = all_commands();
  const ParsedLine parsed = parse_command_line(commands, line, context.env);
  if (const auto* complaint = std::get_if<Complaint>(&parsed)) {
    say_error(context.terminal, *complaint);
    return kExitUsage;
  }
  if (const auto* help = std::get_if<HelpWanted>(&parsed)) {
    write_out(context.terminal, help->command == nullptr ? help_text(commands) : help_text(*help->command));
    return exit_code_of(kExitOk, context.terminal);
  }
  return exit_code_of(run_invocation(std::get<Invocation>(parsed), context), context.terminal);
}

}  // namespace

}  // namespace monarch

int main(int argc, char** argv) {
  return monarch::run_monarch(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
