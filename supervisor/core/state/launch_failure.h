#pragma once

// What is said of a LaunchFailure. It is journalled, so that a verdict can name all hosts that did not start, each with
// what it answered and a command that shows it again.
//
// Thread: pure functions.

#include <string>

#include "transport/messages/launch.h"

namespace monarch {

// The host's key was refused: an operator must decide, no retry helps.
constexpr bool is_host_key(LaunchFailureKind kind) {
  return kind == LaunchFailureKind::kHostKeyChanged || kind == LaunchFailureKind::kHostKeyUnknown ||
         kind == LaunchFailureKind::kHostKeyRevoked;
}

// For people, in a word or two: "refused", "host key changed".
std::string name_of(LaunchFailureKind kind);

// "refused (connect, after 1.2s): connecting to …".
std::string what_failed(const LaunchFailure& failure);

// With texts cut so that it fits into a record of the journal, and the failures of many hosts into a verdict.
LaunchFailure bounded(LaunchFailure failure);

}  // namespace monarch
