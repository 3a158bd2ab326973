#include "cli/term/unread_input.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace monarch {

bool has_unread_input(int fd) {
  struct stat what {};
  if (::fstat(fd, &what) != 0) return false;
  if (S_ISREG(what.st_mode)) {
    const off_t at = ::lseek(fd, 0, SEEK_CUR);
    return at >= 0 && at < what.st_size;
  }
  int bytes = 0;
  return (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode)) && ::ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace monarch
