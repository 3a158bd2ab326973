#include "transport/tensor/row_copy.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace monarch::tensor {

namespace {

constexpr std::size_t kLeastStreamed = 512;        // a shorter row gains nothing
constexpr std::uint64_t kCacheBytes = 32U << 20U;  // where the system does not say
constexpr std::uint64_t kOfTheCache = 4;           // a pull that is larger than such a part of it

#ifdef __SSE2__
constexpr std::uint64_t kRowsAhead = 4;
constexpr std::size_t kMostAhead = 8U << 10U;  // a longer row is foreseen, and four of them push out what was asked for
constexpr std::size_t kLine = 64;

std::size_t bytes_until_aligned(const char* to, std::size_t width, std::size_t size) {
  return std::min(size, (width - reinterpret_cast<std::uintptr_t>(to) % width) % width);
}

void stream_16(char* to, const char* from, std::size_t size) {
  constexpr std::size_t kWidth = sizeof(__m128i);
  const std::size_t head = bytes_until_aligned(to, kWidth, size);
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

// The file is compiled for every processor of its kind, and this function for those with AVX2 alone. `ahead`: a row of
// the same size that is wanted soon.
template <bool kWithAhead>
__attribute__((target("avx2"))) void stream_32(char* to, const char* from, std::size_t size, const char* ahead) {
  constexpr std::size_t kWidth = sizeof(__m256i);
  const std::size_t head = bytes_until_aligned(to, kWidth, size);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + 4 * kWidth <= size; at += 4 * kWidth) {
    if constexpr (kWithAhead) {
      _mm_prefetch(ahead + at, _MM_HINT_NTA);
      _mm_prefetch(ahead + at + kLine, _MM_HINT_NTA);
    }
    const auto* const source = reinterpret_cast<const __m256i*>(from + at);
    auto* const target = reinterpret_cast<__m256i*>(to + at);
    const __m256i first = _mm256_loadu_si256(source);
    const __m256i second = _mm256_loadu_si256(source + 1);
    const __m256i third = _mm256_loadu_si256(source + 2);
    const __m256i fourth = _mm256_loadu_si256(source + 3);
    _mm256_stream_si256(target, first);
    _mm256_stream_si256(target + 1, second);
    _mm256_stream_si256(target + 2, third);
    _mm256_stream_si256(target + 3, fourth);
  }
  std::memcpy(to + at, from + at, size - at);
}

void stream(const RowRun& run, StoreWidth width) {
  const char* from = run.from;
  char* to = run.to;
  for (std::uint64_t left = run.rows; left > 0; --left) {
    if (width == StoreWidth::k16Bytes) {
      stream_16(to, from, run.row);
    } else if (left > kRowsAhead && run.row <= kMostAhead) {
      stream_32<true>(to, from, run.row, from + kRowsAhead * run.source_pitch);
    } else {
      stream_32<false>(to, from, run.row, nullptr);
    }
    from += run.source_pitch;
    to += run.destination_pitch;
  }
}

StoreWidth widest() { return __builtin_cpu_supports("avx2") != 0 ? StoreWidth::k32Bytes : StoreWidth::k16Bytes; }
#else
void stream(const RowRun&, StoreWidth) {}

StoreWidth widest() { return StoreWidth::kNone; }
#endif

}  // namespace

CopyWay way_for(std::uint64_t bytes) {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::uint64_t size = cache > 0 ? static_cast<std::uint64_t>(cache) : kCacheBytes;
  return bytes > size / kOfTheCache ? CopyWay::kStreaming : CopyWay::kCached;
}

StoreWidth store_width() {
  static const StoreWidth width = widest();
  return width;
}

void copy_run(const RowRun& run, CopyWay way, StoreWidth width) {
  if (way == CopyWay::kStreaming && run.row >= kLeastStreamed && width != StoreWidth::kNone) return stream(run, width);
  const char* from = run.from;
  char* to = run.to;
  for (std::uint64_t left = run.rows; left > 0; --left) {
    std::memcpy(to, from, run.row);
    from += run.source_pitch;
    to += run.destination_pitch;
  }
}

void copy_row(char* to, const char* from, std::size_t size, CopyWay way) {
  copy_run({.from = from, .to = to, .row = size, .rows = 1}, way);
}

void copy_rows(const Copy& copy, const char* from, char* to, CopyWay way) {
  for_each_run(copy, [&](std::uint64_t source, std::uint64_t destination, const Copy::Loop& loop) {
    copy_run({.from = from + source,
              .to = to + destination,
              .row = static_cast<std::size_t>(copy.row),
              .rows = loop.count,
              .source_pitch = loop.source,
              .destination_pitch = loop.destination},
             way);
  });
}

void finish_rows() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace monarch::tensor
