#pragma once

// check_main(): `monarch-worker check`: answers what a doctor asks on standard input (wire/check_stream.h) until that
// ends, or until the time that the doctor gave it is up; then takes away what it wrote, and leaves. It is no part of a
// job, and starts nothing that outlives it.
//
// Thread: main, which stays the only one.

namespace monarch {

// The exit code: 0, 1 where a request could not be read.
int check_main();

}  // namespace monarch
