#include "transport/tensor/core/dtype.h"

#include <array>
#include <cstring>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

struct NamedDtype {
  std::string_view name;
  Dtype dtype;
};

constexpr std::array kNamedDtypes = {
    NamedDtype{"int8", {0, 8}},
    NamedDtype{"int16", {0, 16}},
    NamedDtype{"int32", {0, 32}},
    NamedDtype{"int64", {0, 64}},
    NamedDtype{"uint8", {1, 8}},
    NamedDtype{"uint16", {1, 16}},
    NamedDtype{"uint32", {1, 32}},
    NamedDtype{"uint64", {1, 64}},
    NamedDtype{"float16", {2, 16}},
    NamedDtype{"float32", {2, 32}},
    NamedDtype{"float64", {2, 64}},
    NamedDtype{"bfloat16", {4, 16}},
    NamedDtype{"complex32", {5, 32}},
    NamedDtype{"complex64", {5, 64}},
    NamedDtype{"complex128", {5, 128}},
    NamedDtype{"bool", {6, 8}},
    NamedDtype{"float8_e3m4", {7, 8}},
    NamedDtype{"float8_e4m3", {8, 8}},
    NamedDtype{"float8_e4m3b11fnuz", {9, 8}},
    NamedDtype{"float8_e4m3fn", {10, 8}},
    NamedDtype{"float8_e4m3fnuz", {11, 8}},
    NamedDtype{"float8_e5m2", {12, 8}},
    NamedDtype{"float8_e5m2fnuz", {13, 8}},
    NamedDtype{"float8_e8m0fnu", {14, 8}},
    NamedDtype{"float4_e2m1fn_x2", {17, 4, 2}},
};

}  // namespace

std::uint64_t element_bytes(const Dtype& dtype) {
  const std::uint64_t bits = std::uint64_t{dtype.bits} * dtype.lanes;
  return bits % 8 == 0 ? bits / 8 : 0;
}

std::string to_text(const Dtype& dtype) {
  for (const NamedDtype& named : kNamedDtypes) {
    if (named.dtype == dtype) return std::string(named.name);
  }
  return text("dtype(", unsigned{dtype.code}, ", ", unsigned{dtype.bits}, ", ", dtype.lanes, ')');
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const NamedDtype& named : kNamedDtypes) {
    if (named.name == name) return named.dtype;
  }
  return std::nullopt;
}

void round_to_bfloat16(char* to, const char* from, std::size_t count) {
  constexpr std::uint32_t kInfinity = 0x7f80'0000;
  constexpr std::uint32_t kQuiet = 0x0040'0000;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    const bool is_nan = (bits & ~0x8000'0000U) > kInfinity;
    const std::uint32_t rounded = is_nan ? bits | kQuiet : bits + 0x7fff + (bits >> 16U & 1U);
    const auto half = static_cast<std::uint16_t>(rounded >> 16U);
    std::memcpy(to + i * sizeof half, &half, sizeof half);
  }
}

}  // namespace monarch::tensor
