#pragma once

// The spec that `monarch init` writes: eight lines that run, and behind them in comments every further key that this
// build honours, from the rows of the schema.
//
// Thread: pure functions.

#include <string>

namespace monarch {

std::string init_template();

}  // namespace monarch
