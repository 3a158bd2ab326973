#include "transport/base/result.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

#include "transport/base/text.h"

namespace monarch {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid: return "invalid";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kBusy: return "busy";
    case ErrorCode::kGone: return "gone";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kDevice: return "device";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

namespace {

ErrorCode code_of_errno(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR: return ErrorCode::kNotFound;
    case EAGAIN:
    case EBUSY:
    case EADDRINUSE:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT: return ErrorCode::kBusy;
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case ESRCH: return ErrorCode::kGone;
    case ETIMEDOUT: return ErrorCode::kTimeout;
    case EINVAL:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG: return ErrorCode::kInvalid;
    case ENOSYS:
    case EOPNOTSUPP: return ErrorCode::kUnsupported;
    default: return ErrorCode::kInternal;
  }
}

// Without a limit a file system has one of its own.
std::string file_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return text(limit.rlim_cur, " bytes at most, of shared memory, too: ulimit -f");
}

}  // namespace

bool is_later(int errno_value) { return errno_value == EAGAIN || errno_value == EWOULDBLOCK || errno_value == EINTR; }

std::string system_word(int errno_value) {
  const std::string word = std::generic_category().message(errno_value);
  const std::string limit = errno_value == EMFILE  ? open_files_limit()
                            : errno_value == EFBIG ? file_size_limit()
                                                   : std::string();
  return limit.empty() ? word : text(word, " (", limit, ")");
}

std::string open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return text(limit.rlim_cur, " at most: ulimit -n");
}

Error errno_error(ErrorCode code, std::string_view what, int errno_value) {
  return Error{code, text(what, ": ", system_word(errno_value)), errno_value};
}

Error errno_error(std::string_view what, int errno_value) {
  return errno_error(code_of_errno(errno_value), what, errno_value);
}

}  // namespace monarch
