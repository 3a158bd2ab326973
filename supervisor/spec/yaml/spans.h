#pragma once

// How far a value reaches in the text of its line, to be underlined: a parser tells only where it starts.
//
// Thread: pure functions.

#include <cstddef>
#include <string_view>

namespace monarch {

// `line` starts at the value and ends with its line.
std::size_t word_span(std::string_view line);
std::size_t plain_span(std::string_view line,
                       std::string_view value);  // one that was folded from lines: all of the first
std::size_t quoted_span(std::string_view line);  // of | and >: 1

// Where the text in quotes at the front of `rest` ends, behind its closing quote; npos: it is not closed.
std::size_t end_of_quoted(std::string_view rest);

}  // namespace monarch
