#pragma once

// Buffer: bytes that nobody changes, with whoever has them: copies are of the same bytes. As a parameter or a result of
// an endpoint it is read where it lies, in memory that its sender lent, and stays there as long as somebody has a copy.
// To others it is bytes, as monarch::codec::Bytes is.
//
//   monarch::Buffer::Filling filling = monarch::Buffer::make(size);   // pages that the receiver will read
//   read_into(filling.data(), filling.size());
//   trainers.call<&Trainer::train>(std::move(filling).done()).get();  // as the only large argument it is not copied
//
// A Buffer that is kept keeps its sender's memory, of which each process lends 128 MiB; then others get bodies in new
// memory, which takes longer. Of those that make() gave, 256 at once lie in such memory, and more are copied.
//
// Thread: values; the bytes any.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <monarch/plugin_v1.h>
#include <monarch/codec.hpp>
#include <monarch/host.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

namespace detail {

// Until nobody has it any more; nullptr: there is none.
inline std::shared_ptr<const void> owner_of(const monarch_buffers_v1& by, monarch_memory_v1* memory) {
  if (memory == nullptr) return nullptr;
  return {memory,
          [drop = by.drop](const void* kept) { drop(static_cast<monarch_memory_v1*>(const_cast<void*>(kept))); }};
}

}  // namespace detail

class MONARCH_SEEN Buffer {
 public:
  class Filling;

  Buffer() = default;  // of no bytes
  // A copy.
  explicit Buffer(std::string_view bytes);
  // Where they lie, as long as `owner` has them.
  Buffer(std::string_view bytes, std::shared_ptr<const void> owner) : bytes_(bytes), owner_(std::move(owner)) {}

  // Room for so many bytes, at a page; what is in it is any. Throws std::bad_alloc.
  static Filling make(std::size_t size);

  const char* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::string_view view() const { return bytes_; }
  // Who has the bytes.
  const std::shared_ptr<const void>& owner() const { return owner_; }
  bool operator==(const Buffer& other) const { return bytes_ == other.bytes_; }

 private:
  std::string_view bytes_;
  std::shared_ptr<const void> owner_;  // owners: the copies of this
};

// The bytes of a Buffer while they are written.
class MONARCH_SEEN Buffer::Filling {
 public:
  Filling(Filling&&) = default;
  Filling& operator=(Filling&&) = default;

  char* data() { return data_; }
  std::size_t size() const { return size_; }
  // From here on nobody writes there.
  Buffer done() && { return {std::string_view(data_, size_), std::move(owner_)}; }

 private:
  friend class Buffer;
  Filling(char* data, std::size_t size, std::shared_ptr<const void> owner)
      : data_(data), size_(size), owner_(std::move(owner)) {}

  char* data_;
  std::size_t size_;
  std::shared_ptr<const void> owner_;  // owners: this, then the Buffer
};

inline Buffer::Filling Buffer::make(std::size_t size) {
  constexpr std::align_val_t kPage{4096};
  const monarch_host_v1* const host = detail::known_host();
  const monarch_buffers_v1* const by = size < codec::Writer::kNotedBytes ? nullptr : detail::buffers_of(host);
  void* data = nullptr;
  if (by != nullptr) {
    if (auto owner = detail::owner_of(*by, by->make(host, size, &data))) {
      return {static_cast<char*>(data), size, std::move(owner)};
    }
  }
  data = ::operator new(size, kPage);
  return {static_cast<char*>(data), size, std::shared_ptr<const void>(data, [](const void* made) {
            ::operator delete (const_cast<void*>(made), std::align_val_t{4096});
          })};
}

inline Buffer::Buffer(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::shared_ptr<char[]> copy(new char[bytes.size()]);
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  bytes_ = {copy.get(), bytes.size()};
  owner_ = copy;
}

namespace detail {

// What is read from there may be kept.
inline codec::Keeper keeper_of(const Buffer& buffer) {
  return {.keep = [](const void* of) { return static_cast<const Buffer*>(of)->owner(); }, .of = &buffer};
}

// The value of an answer, within on_answer: where it lies, or a copy.
inline Buffer value_of(const monarch_host_v1* host, const monarch_answer_v1& answer) {
  const std::string_view bytes(static_cast<const char*>(answer.value.data), answer.value.size);
  const monarch_buffers_v1* const by = bytes.size() < codec::Writer::kNotedBytes ? nullptr : buffers_of(host);
  if (by != nullptr) {
    if (auto owner = owner_of(*by, by->hold_value(host, &answer))) return {bytes, std::move(owner)};
  }
  return Buffer(bytes);
}

// The arguments of a delivery: they are held once something of them is kept.
struct HeldArguments {
  const monarch_host_v1* host;
  monarch_delivery_v1* delivery;
  codec::Keeper keeper() const {
    const auto keep = [](const void* of) -> std::shared_ptr<const void> {
      const HeldArguments& held = *static_cast<const HeldArguments*>(of);
      const monarch_buffers_v1* const by = buffers_of(held.host);
      if (by == nullptr) return nullptr;
      return owner_of(*by, by->hold_arguments(held.host, held.delivery));
    };
    return {.keep = keep, .of = this};
  }
};

}  // namespace detail
}  // namespace MONARCH_INSIDE

namespace codec MONARCH_INSIDE {
namespace detail {

// As Bytes. A short one is copied: what it would keep may be much more.
template <>
struct Standard<Buffer> {
  static void write(Writer& writer, const Buffer& buffer) { writer.binary(buffer.view()); }
  static bool read(Reader& reader, Buffer& buffer) {
    std::string_view view;
    if (!reader.binary(view)) return false;
    auto owner = view.size() < Writer::kNotedBytes ? nullptr : reader.keep();
    buffer = owner == nullptr ? Buffer(view) : Buffer(view, std::move(owner));
    return true;
  }
};

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch
