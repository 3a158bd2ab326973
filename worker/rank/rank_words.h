#pragma once

// What monarch-rank says to others than its post: READY=1 to whoever started it (sd_notify(3), monarch-rank(7)), and
// lines of its own in the output of its rank.
//
// Thread: any.

#include <string>

namespace monarch {

// Nothing is said where nobody listens.
void say_ready();
// "monarch-rank: …" on standard error, in one piece.
void say(const std::string& words);

}  // namespace monarch
