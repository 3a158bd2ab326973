#pragma once

// Which of the compiler's sanitizers are in this program: gcc says it by macros, clang by features.

#if defined(__has_feature)
#define MONARCH_HAS_SANITIZER(feature) __has_feature(feature)
#else
#define MONARCH_HAS_SANITIZER(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || MONARCH_HAS_SANITIZER(thread_sanitizer)
#define MONARCH_THREAD_SANITIZER 1
#else
#define MONARCH_THREAD_SANITIZER 0
#endif
#if defined(__SANITIZE_ADDRESS__) || MONARCH_HAS_SANITIZER(address_sanitizer)
#define MONARCH_ADDRESS_SANITIZER 1
#else
#define MONARCH_ADDRESS_SANITIZER 0
#endif

namespace monarch {

inline constexpr bool kThreadSanitizer = MONARCH_THREAD_SANITIZER != 0;
// Shadow memory beside the program's own.
inline constexpr bool kSanitized = kThreadSanitizer || MONARCH_ADDRESS_SANITIZER != 0;

}  // namespace monarch
