// Symbols of transports and mechanisms that Debian's libzmq.a was built with and that we never use: GSSAPI, PGM, NORM.
// They satisfy the linker of a fully static executable without those libraries, which exist only as shared ones. Our
// sockets speak tcp:// with CURVE and inproc://, so none of these is called but pgm_init and pgm_shutdown, which libzmq
// calls for every context. Whoever does reach one is told which, and the process ends.
//
// Not in ISO C: a function's type differs here from its owner's. No prototype of the owner is seen by this file, and on
// the System V ABI a function that never returns does not care what it was passed.

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void absent(const char* symbol) {
  static const char kBefore[] = "monarch: libzmq called ";
  static const char kAfter[] = ", of a transport that this executable was linked without\n";
  // Nothing is left to do about a standard error that cannot be written to.
  if (write(STDERR_FILENO, kBefore, sizeof kBefore - 1) < 0) abort();
  if (write(STDERR_FILENO, symbol, strlen(symbol)) < 0) abort();
  if (write(STDERR_FILENO, kAfter, sizeof kAfter - 1) < 0) abort();
  abort();
}

#define MONARCH_ABSENT(symbol) \
  void symbol(void);           \
  void symbol(void) { absent(#symbol); }

// GSSAPI
extern void* GSS_C_NT_HOSTBASED_SERVICE;
void* GSS_C_NT_HOSTBASED_SERVICE;
extern void* GSS_C_NT_USER_NAME;
void* GSS_C_NT_USER_NAME;
MONARCH_ABSENT(gss_accept_sec_context)
MONARCH_ABSENT(gss_acquire_cred)
MONARCH_ABSENT(gss_delete_sec_context)
MONARCH_ABSENT(gss_display_name)
MONARCH_ABSENT(gss_import_name)
MONARCH_ABSENT(gss_init_sec_context)
MONARCH_ABSENT(gss_release_buffer)
MONARCH_ABSENT(gss_release_cred)
MONARCH_ABSENT(gss_release_name)
MONARCH_ABSENT(gss_unwrap)
MONARCH_ABSENT(gss_wrap)

// NORM
extern void* NORM_INSTANCE_INVALID;
void* NORM_INSTANCE_INVALID;
extern void* NORM_NODE_ANY;
void* NORM_NODE_ANY;
extern void* NORM_OBJECT_INVALID;
void* NORM_OBJECT_INVALID;
extern void* NORM_SESSION_INVALID;
void* NORM_SESSION_INVALID;
MONARCH_ABSENT(NormCreateInstance)
MONARCH_ABSENT(NormCreateSession)
MONARCH_ABSENT(NormDestroyInstance)
MONARCH_ABSENT(NormDestroySession)
MONARCH_ABSENT(NormGetDescriptor)
MONARCH_ABSENT(NormGetNextEvent)
MONARCH_ABSENT(NormGetRandomSessionId)
MONARCH_ABSENT(NormIsUnicastAddress)
MONARCH_ABSENT(NormNodeDelete)
MONARCH_ABSENT(NormObjectGetType)
MONARCH_ABSENT(NormObjectGetUserData)
MONARCH_ABSENT(NormObjectSetUserData)
MONARCH_ABSENT(NormSetCongestionControl)
MONARCH_ABSENT(NormSetDefaultSyncPolicy)
MONARCH_ABSENT(NormSetDefaultUnicastNack)
MONARCH_ABSENT(NormSetLoopback)
MONARCH_ABSENT(NormSetMulticastInterface)
MONARCH_ABSENT(NormSetRxPortReuse)
MONARCH_ABSENT(NormSetTTL)
MONARCH_ABSENT(NormStartReceiver)
MONARCH_ABSENT(NormStartSender)
MONARCH_ABSENT(NormStopInstance)
MONARCH_ABSENT(NormStopReceiver)
MONARCH_ABSENT(NormStopSender)
MONARCH_ABSENT(NormStreamFlush)
MONARCH_ABSENT(NormStreamOpen)
MONARCH_ABSENT(NormStreamRead)
MONARCH_ABSENT(NormStreamSeekMsgStart)
MONARCH_ABSENT(NormStreamWrite)

// PGM. WARNING: libzmq 4.3.4 makes no context unless pgm_init answers true; there is nothing to set up, and nothing to
// take down.
int pgm_init(void* error);
int pgm_init(void* error) {
  (void)error;
  return 1;
}
int pgm_shutdown(void);
int pgm_shutdown(void) { return 1; }
MONARCH_ABSENT(pgm_bind3)
MONARCH_ABSENT(pgm_close)
MONARCH_ABSENT(pgm_connect)
MONARCH_ABSENT(pgm_error_free)
MONARCH_ABSENT(pgm_free)
MONARCH_ABSENT(pgm_freeaddrinfo)
MONARCH_ABSENT(pgm_getaddrinfo)
MONARCH_ABSENT(pgm_getsockopt)
MONARCH_ABSENT(pgm_gsi_create_from_data)
MONARCH_ABSENT(pgm_recvmsgv)
MONARCH_ABSENT(pgm_send)
MONARCH_ABSENT(pgm_setsockopt)
MONARCH_ABSENT(pgm_socket)
