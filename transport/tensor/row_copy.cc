#include "transport/tensor/row_copy.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace monarch::tensor {

namespace {

constexpr std::size_t kLeastStreamed = 512;        // a shorter row gains nothing
constexpr std::uint64_t kCacheBytes = 32U << 20U;  // where the system does not say
constexpr std::uint64_t kOfTheCache = 4;           // a pull that is larger than such a part of it

#ifdef __SSE2__
void stream(char* to, const char* from, std::size_t size) {
  constexpr std::size_t kWidth = sizeof(__m128i);
  const std::size_t head = std::min(size, (kWidth - reinterpret_cast<std::uintptr_t>(to) % kWidth) % kWidth);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + 4 * kWidth <= size; at += 4 * kWidth) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
  }
  std::memcpy(to + at, from + at, size - at);
}
#else
void stream(char* to, const char* from, std::size_t size) { std::memcpy(to, from, size); }
#endif

}  // namespace

CopyWay way_for(std::uint64_t bytes) {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::uint64_t size = cache > 0 ? static_cast<std::uint64_t>(cache) : kCacheBytes;
  return bytes > size / kOfTheCache ? CopyWay::kStreaming : CopyWay::kCached;
}

void copy_row(char* to, const char* from, std::size_t size, CopyWay way) {
  if (way == CopyWay::kStreaming && size >= kLeastStreamed) return stream(to, from, size);
  std::memcpy(to, from, size);
}

void copy_rows(const Copy& copy, const char* from, char* to, CopyWay way) {
  for_each_row(copy, [&](std::uint64_t source, std::uint64_t destination) {
    copy_row(to + destination, from + source, copy.row, way);
  });
}

void finish_rows() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace monarch::tensor
