// What LeakSanitizer is told not to report in these tests: an agent that is asked for its keys a second time in one
// session leaves libssh (0.10) with the first answer's buffer, 152 bytes that nobody frees. Its stack ends in that
// library, which is stripped.

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" const char* __lsan_default_suppressions();
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:ssh_buffer_new\n"; }
