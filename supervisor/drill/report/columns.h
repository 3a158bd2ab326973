#pragma once

// Columns of whole numbers as a text, each number as its difference to the one before: "100 5*40 - 6" is 100, then
// forty times 5 more, then nothing, then 6 more than the last.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/json.h"

namespace monarch::drill {

inline constexpr std::int64_t kMostValue = 4'000'000'000'000'000;

using ColumnValue = std::optional<std::int64_t>;

class ColumnWriter {
 public:
  void add(ColumnValue value);
  std::string done();

 private:
  void flush();

  std::string out_;
  std::string token_;
  std::size_t many_ = 0;
  std::int64_t before_ = 0;
};

// Exactly so many; nothing: it is no such column.
std::optional<std::vector<ColumnValue>> read_column(const Json& json, std::size_t many);

}  // namespace monarch::drill
