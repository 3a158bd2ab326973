// What nearly every test begins with, read once for each test program that names it as its cpp_pch instead of once for each of
// its files: GoogleTest takes longer to read than most tests. It stands for no include: a file names what it uses, and builds
// without this.
//
// No #pragma once: it is compiled by itself, and GCC warns of that one then.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
