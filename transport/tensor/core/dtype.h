#pragma once

// Dtype: what an element of a tensor is, as DLPack counts it (dlpack.h, DLDataType).
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <monarch/fields.hpp>

namespace monarch::tensor {

struct Dtype {
  std::uint8_t code = 0;  // DLDataTypeCode
  std::uint8_t bits = 0;  // of one lane
  std::uint16_t lanes = 1;
  bool operator==(const Dtype&) const = default;
};
MONARCH_FIELDS(Dtype, code, bits, lanes)

// In bytes; 0: it is none that lies in whole bytes.
std::uint64_t element_bytes(const Dtype& dtype);

// As PyTorch and NumPy call it ("float32"); else its three numbers.
std::string to_text(const Dtype& dtype);
std::optional<Dtype> parse_dtype(std::string_view name);

}  // namespace monarch::tensor
