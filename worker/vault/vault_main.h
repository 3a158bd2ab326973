#pragma once

// vault_main(): what `monarch-worker vault --job UUID --host NAME` is; its daemon has it started, with a VaultSetup as
// sealed memory in its standard input. Returns the exit code.
//
// Thread: main, alone.

namespace monarch {

int vault_main();

}  // namespace monarch
