// monarch-rank: see rank_main.h. It lies within monarch-worker, which writes it out on the host that needs it.

#include <string>
#include <vector>

#include "worker/rank/rank_main.h"

int main(int argc, char** argv) { return monarch::rank_main(std::vector<std::string>(argv + 1, argv + argc)); }
