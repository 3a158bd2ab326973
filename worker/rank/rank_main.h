#pragma once

// monarch-rank: the process of a rank that has actors, or that is a controller. It is the only one that loads what
// users have compiled. It has no key and no network: the post of its host carries what it calls and what calls it.
//
// Thread: the process's first.

#include <string>
#include <vector>

namespace monarch {

// `arguments`: without the program's name.
int rank_main(const std::vector<std::string>& arguments);

}  // namespace monarch
