#include "supervisor/core/state/launch_failure.h"

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kPhaseOfLaunchBytes = 32;
constexpr std::size_t kMessageBytes = 1'024;
constexpr std::size_t kWordsBytes = 4'096;
constexpr std::size_t kAgainBytes = 1'024;

void cut(std::string& words, std::size_t most) {
  if (words.size() > most) words.resize(most);
}

}  // namespace

std::string name_of(LaunchFailureKind kind) {
  switch (kind) {
    case LaunchFailureKind::kOther: return "failed";
    case LaunchFailureKind::kName: return "name not known";
    case LaunchFailureKind::kRefused: return "refused";
    case LaunchFailureKind::kUnreachable: return "unreachable";
    case LaunchFailureKind::kTimeout: return "timeout";
    case LaunchFailureKind::kHostKeyChanged: return "host key changed";
    case LaunchFailureKind::kHostKeyUnknown: return "host key unknown";
    case LaunchFailureKind::kHostKeyRevoked: return "host key revoked";
    case LaunchFailureKind::kAuthentication: return "not let in";
    case LaunchFailureKind::kClosed: return "closed";
    case LaunchFailureKind::kShellNoise: return "shell noise";
    case LaunchFailureKind::kDiskFull: return "disk full";
    case LaunchFailureKind::kNotExecutable: return "not executable";
    case LaunchFailureKind::kArchitecture: return "architecture";
    case LaunchFailureKind::kExec: return "worker not started";
    case LaunchFailureKind::kCallBack: return "call-back blocked";
    case LaunchFailureKind::kVersion: return "version";
    case LaunchFailureKind::kForwarding: return "forwarding refused";
    case LaunchFailureKind::kNotWritable: return "not writable";
    case LaunchFailureKind::kResources: return "lacks resources";
    case LaunchFailureKind::kLibraries: return "system too old";
    case LaunchFailureKind::kLauncherGone: return "launcher gone";
    case LaunchFailureKind::kInterface: return "no such interface";
    case LaunchFailureKind::kUnwell: return "unwell";
    case LaunchFailureKind::kNotGranted: return "not granted";
  }
  return "";
}

std::string what_failed(const LaunchFailure& failure) {
  const std::string when =
      failure.phase.empty() ? std::string() : text(" (", failure.phase, ", after ", to_text(failure.elapsed), ")");
  return text(name_of(failure.kind), when, ": ", printable(failure.message));
}

LaunchFailure bounded(LaunchFailure failure) {
  cut(failure.phase, kPhaseOfLaunchBytes);
  cut(failure.message, kMessageBytes);
  cut(failure.words, kWordsBytes);
  cut(failure.again, kAgainBytes);
  return failure;
}

}  // namespace monarch
