#pragma once

// post_main(): what `monarch-worker post --job UUID --host NAME` is; its daemon has it started, with a PostSetup as
// sealed memory in its standard input. Returns the exit code.
//
// Thread: main, alone.

namespace monarch {

int post_main();

}  // namespace monarch
