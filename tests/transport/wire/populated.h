#pragma once

// Populated: a value of each field that shows in its bytes what the field is. Every optional and list holds something,
// an enum is its last enumerator, an integer is near the largest of its width, and no two values of a struct are the
// same: they are counted in the order of declaration, so that a codec that takes fields in another order writes other
// bytes.
//
// Thread: a value.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "transport/wire/codec.h"

namespace monarch {

class Populated {
 public:
  void fill(bool& value) { value = next() % 2 == 1; }
  void fill(double& value) { value = static_cast<double>(next()) + 0.5; }
  void fill(std::string& value) { value = text("s", next()); }
  void fill(Duration& value) { value = Duration::nanoseconds(1'000'000'000 + next()); }
  void fill(Instant& value) { value = Instant::since_boot(Duration::nanoseconds(1'000'000'000 + next())); }
  void fill(JobUuid& value) { value.bytes.fill(static_cast<std::uint8_t>(next())); }
  template <class Tag, class Int>
  void fill(StrongId<Tag, Int>& value) {
    Int number{};
    fill(number);
    value = StrongId<Tag, Int>(number);
  }
  template <class T>
  void fill(std::vector<T>& values) {
    fill(values.emplace_back());
  }
  template <class T, std::size_t N>
  void fill(std::array<T, N>& values) {
    for (T& value : values) fill(value);
  }
  template <class T>
  void fill(std::map<std::string, T>& values) {
    std::pair<std::string, T> entry;
    fill(entry);
    values.insert(std::move(entry));
  }
  template <class A, class B>
  void fill(std::pair<A, B>& value) {
    fill(value.first);
    fill(value.second);
  }
  template <class T>
  void fill(std::optional<T>& value) {
    fill(value.emplace());
  }
  template <class T>
  void fill(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = monarch_enum_max(value);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(std::numeric_limits<T>::max() - static_cast<T>(next()));
    } else if constexpr (!codec::detail::Customized<T>) {
      codec::detail::with_fields(value, [this](auto&... field) {
        this->fill_by_place({Field{&field, &Populated::fill_at<std::remove_reference_t<decltype(field)>>}...});
        return true;
      });
    }
  }

 private:
  std::int64_t next() { return counted_++; }

  struct Field {
    void* place;
    void (*fill)(Populated&, void*);
  };

  template <class T>
  static void fill_at(Populated& populated, void* place) {
    populated.fill(*static_cast<T*>(place));
  }

  void fill_by_place(std::vector<Field> fields) {
    std::sort(fields.begin(), fields.end(),
              [](const Field& a, const Field& b) { return std::less<>()(a.place, b.place); });
    for (const Field& field : fields) field.fill(*this, field.place);
  }

  std::int64_t counted_ = 1;
};

}  // namespace monarch
