#pragma once

// Dtype: what an element of a tensor is, as DLPack counts it (dlpack.h, DLDataType).
//
// Thread: values.

#include <cstddef>
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

inline constexpr Dtype kFloat32{2, 32, 1};
inline constexpr Dtype kBfloat16{4, 16, 1};

// In bytes; 0: it is none that lies in whole bytes.
std::uint64_t element_bytes(const Dtype& dtype);

// As PyTorch and NumPy call it ("float32"); else its three numbers.
std::string to_text(const Dtype& dtype);
std::optional<Dtype> parse_dtype(std::string_view name);

// `count` elements of float32 as bfloat16, to the nearest, ties to even; a NaN stays one. Neither has to be aligned.
void round_to_bfloat16(char* to, const char* from, std::size_t count);

}  // namespace monarch::tensor
