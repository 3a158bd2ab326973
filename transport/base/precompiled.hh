// What many files begin with, of the standard library alone, read once for each library that names it as its cpp_pch instead of
// once for each of its files. It stands for no include: a file names what it uses, and builds without this.
//
// No #pragma once: it is compiled by itself, and GCC warns of that one then.

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
