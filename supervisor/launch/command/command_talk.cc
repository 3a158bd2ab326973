#include "supervisor/launch/command/command_talk.h"

#include <utility>

#include "supervisor/launch/talk/remote_script.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What OpenSSH's ssh says as it fails. WARNING: its exit status says no more than that it has failed (ssh(1)).
LaunchFailureKind kind_of_saying(std::string_view words) {
  using enum LaunchFailureKind;
  constexpr std::pair<std::string_view, LaunchFailureKind> kSayings[] = {
      // clang-format off
      {"IDENTIFICATION HAS CHANGED", kHostKeyChanged}, {"marked as revoked", kHostKeyRevoked},
      {"Host key verification failed", kHostKeyUnknown}, {"Permission denied", kAuthentication},
      {"Could not resolve hostname", kName}, {"Connection refused", kRefused},
      {"No route to host", kUnreachable}, {"Network is unreachable", kUnreachable},
      {"timed out", kTimeout}, {"Connection closed", kClosed}, {"Connection reset", kClosed}};
  // clang-format on
  for (const auto& [saying, kind] : kSayings) {
    if (words.find(saying) != std::string_view::npos) return kind;
  }
  return kOther;
}

}  // namespace

ProgramTalkOptions command_talk(const LaunchCommand& spec, HostId host, std::shared_ptr<const WorkerImage> image) {
  const CommandHost& there = spec.hosts[host.value()];
  return {.command = there.command,
          // Of this shell they would be said there as if the command had set them.
          .environment = {{"SSH_CONNECTION", ""}, {"SLURM_LAUNCH_NODE_IPADDR", ""}, {"SLURM_STEP_NUM_TASKS", ""}},
          .greeting = text(remote_command(), "\n"),
          .image = std::move(image),
          .program = there.command.front(),
          .place = "a shell on the host",
          .none = "opened no shell on the host",
          .begins_within = spec.connect_timeout,
          .kind_of = kind_of_saying};
}

}  // namespace monarch
