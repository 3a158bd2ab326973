#pragma once

// What debuggers wrote of two small programs on Debian 12: of a C++ one whose main thread waits for a mutex that it
// holds while another pauses (gdb 13.1, eu-stack 0.188), and of a Python one whose main thread waits for a lock (py-spy
// 0.4.3; native too).
//
// Thread: constants.

#include <string_view>

namespace monarch::recorded {

inline constexpr int kStuckPid = 17315;
inline constexpr int kPythonPid = 22446;

inline constexpr std::string_view kGdb = R"([New LWP 17317]
[Thread debugging using libthread_db enabled]
Using host libthread_db library "/lib/x86_64-linux-gnu/libthread_db.so.1".
futex_wait (private=..., expected=..., futex_word=...) at ../sysdeps/nptl/futex-internal.h:146

Thread 2 (Thread 0x7f50ea61d6c0 (LWP 17317) "stuck"):
#0  0x00007f50ea6f1df2 in __libc_pause () at ../sysdeps/unix/sysv/linux/pause.c:29
#1  0x0000565348f9e1e7 in operator() (__closure=...) at stuck.cc:7
#2  0x0000565348f9e558 in std::__invoke_impl<void, main()::<lambda()> >(std::__invoke_other, struct {...} &&) (__f=...) at /usr/include/c++/12/bits/invoke.h:61
#3  0x00007f50ea8d44a3 in ?? () from /lib/x86_64-linux-gnu/libstdc++.so.6
#4  0x00007f50ea6a71f5 in start_thread (arg=...) at ./nptl/pthread_create.c:442

Thread 1 (Thread 0x7f50eab15440 (LWP 17315) "stuck"):
#0  futex_wait (private=..., expected=..., futex_word=...) at ../sysdeps/nptl/futex-internal.h:146
#1  __GI___lll_lock_wait (futex=..., private=...) at ./nptl/lowlevellock.c:49
#2  0x00007f50ea6aa482 in lll_mutex_lock_optimized (mutex=...) at ./nptl/pthread_mutex_lock.c:48
#3  ___pthread_mutex_lock (mutex=...) at ./nptl/pthread_mutex_lock.c:93
#4  0x0000565348f9e6db in Trainer<int>::step (this=..., n=...) at stuck.cc:6
#5  <signal handler called>
#6  0x0000565348f9e22c in main () at stuck.cc:7
(More stack frames follow...)
[Inferior 1 (process 17315) detached]
)";

inline constexpr std::string_view kEuStack = R"(PID 17315 - process
TID 17315:
#0  0x00007f50ea6a412b __GI___lll_lock_wait - /usr/lib/x86_64-linux-gnu/libc.so.6
    ../sysdeps/nptl/futex-internal.h:146:13
#1  0x00007f50ea6aa482 __pthread_mutex_lock@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6
    ./nptl/pthread_mutex_lock.c:48:5
#2  0x0000565348f9e6db Trainer<int>::step(int) - /srv/stuck
    /srv/stuck.cc:6:82
#3  0x00007f50ea645305 __libc_start_main@@GLIBC_2.34 - /usr/lib/x86_64-linux-gnu/libc.so.6
#4  0x0000565348f9e101 _start - /srv/stuck
TID 17317:
#0  0x00007f50ea6f1df2 pause - /usr/lib/x86_64-linux-gnu/libc.so.6
    ../sysdeps/unix/sysv/linux/pause.c:29:10
#1  0x00007f50ea8d44a3 - /usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30
)";

inline constexpr std::string_view kPySpy = R"(Process 22446: /usr/bin/python3 t.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 22446 (idle): "MainThread"
    Trainer.step (t.py:6)
    <module> (t.py:9)
Thread 22451 (idle): "loader 1"
    waits (t.py:3)
        Arguments:
            n: 7 (of 9)
    Thread.run (threading.py:975)
)";

inline constexpr std::string_view kPySpyNative = R"(Process 22446: /usr/bin/python3 t.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 22446 (idle): "MainThread"
    0x7f50eaa21f16 (libc.so.6)
    PyThread_acquire_lock_timed (python3.11)
    Trainer.step (t.py:6)
)";

}  // namespace monarch::recorded
