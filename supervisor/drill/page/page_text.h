#pragma once

// Text and numbers as they stand in the page. Whatever ranks or hosts said goes through page_text, in an element or
// between double quotes.
//
// Thread: pure functions.

#include <string>
#include <string_view>

namespace monarch::drill {

inline constexpr std::size_t kMostPageText = 300;

// What is longer than `most` bytes is cut, and ends in "…". Marks that turn the direction of what follows are written
// as their numbers.
std::string page_text(std::string_view raw, std::size_t most = kMostPageText);

// "12.300"
std::string fixed(double value, int digits);
// "12.3", and never "12.0".
std::string decimals(double value, int digits = 1);
// "97.1 %"
std::string percent(double part);

// Its last characters, of which a host's name differs from its neighbours'.
std::string name_end(std::string_view name, std::size_t most);

}  // namespace monarch::drill
