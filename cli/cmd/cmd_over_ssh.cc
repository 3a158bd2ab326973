// `monarch over-ssh`: the half of a viewer that runs where a job lives, for somebody on another machine. Not for
// people: `monarch status` and its like execute it over SSH.

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/args/say.h"
#include "cli/away/viewer_host.h"
#include "cli/commands.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/files/directories.h"
#include "transport/base/program_greeting.h"
#include "transport/base/text.h"
#include "transport/wire/runtime_directory.h"

namespace monarch {

namespace {

constexpr Duration kOrderDeadline = Duration::seconds(30);
constexpr std::size_t kTokenBytes = 16;

// The viewer on the other machine is told, and stderr.
int refuse_viewer(const Context& context, const std::string& why) {
  write_out(context.terminal, encode_frame(ViewerFrameKind::kRefused, why));
  say_error(context.terminal, {.id = "E0908", .message = text("over-ssh: ", why), .help = ""});
  return kExitInternal;
}

Result<ViewerOrder> read_order() {
  ViewerFrameReader reader;
  const Instant until = boot_now() + kOrderDeadline;
  std::array<char, 4096> piece{};
  for (;;) {
    MONARCH_ASSIGN(const auto frame, reader.next());
    if (frame) {
      if (frame->kind != ViewerFrameKind::kOrder) return Error{ErrorCode::kInvalid, "what came first is no order"};
      if (!reader.empty()) return Error{ErrorCode::kInvalid, "something came behind the order, before it was answered"};
      return decode_order(frame->payload);
    }
    pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), until));
    if (ready == 0) return Error{ErrorCode::kTimeout, text("no order came within ", to_text(kOrderDeadline))};
    const long got = ready < 0 ? -1 : ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error{ErrorCode::kGone, "the connection ended before there was an order"};
    reader.feed({piece.data(), static_cast<std::size_t>(got)});
  }
}

bool is_token(const std::string& token) {
  return token.size() == 2 * kTokenBytes && std::all_of(token.begin(), token.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// In the folder that outlives logins: the session that brings a new connection is another than the one that brought the
// first.
std::string socket_of(const std::string& token) {
  return text(lasting_directory(::getuid()), "/viewer-", token, ".sock");
}

// Empty: without a folder of ours nobody can come back, and the viewer ends with its connection.
std::string new_token() {
  const std::string folder = lasting_directory(::getuid());
  std::array<char, kTokenBytes> random{};
  const bool drawn = ::getrandom(random.data(), random.size(), 0) == static_cast<long>(random.size());
  if (!drawn || !make_own_directories(folder, 1).ok()) return "";
  return to_hex({random.data(), random.size()});
}

int go_on(const ViewerOrder& order, const Context& context) {
  if (!is_token(order.token)) return refuse_viewer(context, "the order names a viewer in a way that nobody does");
  const Status lent = lend_connection(socket_of(order.token), order.taken, STDIN_FILENO, STDOUT_FILENO);
  return lent.ok() ? kExitOk : refuse_viewer(context, "the viewer here has ended meanwhile");
}

int run_over_ssh(const Arguments&, Context& context) {
  write_out(context.terminal, text(kProgramGreeting, "\n"));
  const auto order = read_order();
  if (!order.ok()) return refuse_viewer(context, order.error().message);
  if (!order->token.empty()) return go_on(*order, context);
  const auto loop = EventLoop::create();
  if (!loop.ok()) return refuse_viewer(context, loop.error().message);
  const std::string token = order->lingers > 0 ? new_token() : std::string();
  const auto host = ViewerHost::start(**loop, {.program = context.executable,
                                               .env = context.env,
                                               .order = *order,
                                               .socket = token.empty() ? "" : socket_of(token),
                                               .token = token});
  if (!host.ok()) return refuse_viewer(context, host.error().message);
  const Status served = (*host)->serve(UniqueFd(::dup(STDIN_FILENO)), UniqueFd(::dup(STDOUT_FILENO)));
  if (!served.ok()) return refuse_viewer(context, served.error().message);
  // From here on the connection is the host's to close, also while we go on without one.
  (void)::close(STDIN_FILENO);
  (void)::close(STDOUT_FILENO);
  (*loop)->run();
  return kExitOk;
}

}  // namespace

Command over_ssh_command() {
  return {.name = "over-ssh",
          .summary = "show a job of this machine to somebody on another (started over SSH)",
          .description = "",
          .flags = {},
          .positionals = {},
          .run = run_over_ssh,
          .hidden = true};
}

}  // namespace monarch
