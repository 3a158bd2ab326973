#pragma once

// say_ready(): READY=1 to whoever started this rank (sd_notify(3), monarch-rank(7)).
//
// Thread: any.

namespace monarch {

// Nothing is said where nobody listens.
void say_ready();

}  // namespace monarch
