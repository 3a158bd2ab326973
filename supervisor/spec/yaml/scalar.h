#pragma once

// What a scalar means, exactly: one way to write each value, and for every near miss the form that would be right.
// Unlike YAML's own rules nothing here depends on the reader: octal, `yes`, `1e3` and bare numbers for durations are
// refused.
//
// Thread: pure functions.

#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/spec/yaml/yaml.h"
#include "transport/base/time.h"

namespace monarch {

// Why a scalar was refused: `label` goes under the caret; `right` is the form that was meant, if it can be told.
struct WrongScalar {
  std::string label;
  std::string right;
};

template <class T>
struct Scalar {
  std::optional<T> value;
  WrongScalar wrong;  // if there is no value
};

Scalar<std::int64_t> parse_integer(const YamlNode& node);
Scalar<double> parse_number(const YamlNode& node);       // 4 or 0.25
Scalar<bool> parse_bool(const YamlNode& node);           // true or false
Scalar<Duration> parse_duration(const YamlNode& node);   // 500ms, 1.5s, 1h30m
Scalar<std::uint64_t> parse_size(const YamlNode& node);  // 64MiB

// "90s" as parse_duration takes it; to_text of time.h writes for people and puts spaces in.
std::string write_duration(Duration duration);

}  // namespace monarch
