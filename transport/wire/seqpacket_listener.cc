#include "transport/wire/seqpacket_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/text.h"
#include "transport/wire/unix_address.h"

namespace monarch {

namespace {

constexpr int kBacklog = 128;  // more at once get EAGAIN from connect() and try again
constexpr int kAcceptsPerTurn = 16;
constexpr Duration kPauseWithoutDescriptors = Duration::milliseconds(100);

// Removes a socket at which nobody answers.
Status remove_stale(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return errno == ENOENT ? Status() : errno_error(text("looking at ", printable(path)), errno);
  }
  if (!S_ISSOCK(status.st_mode) || status.st_uid != ::geteuid()) {
    return Error{ErrorCode::kInvalid, text(printable(path), " is there and is not a socket of ours")};
  }
  const auto answer = connect_seqpacket(path);
  if (answer.ok() || answer.error().code == ErrorCode::kBusy) {
    return Error{ErrorCode::kBusy, text("another process listens at ", printable(path))};
  }
  if (answer.error().code != ErrorCode::kGone) return answer.error();
  if (::unlink(path.c_str()) != 0) return errno_error(text("removing the stale socket ", printable(path)), errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<SeqpacketListener>> SeqpacketListener::create(EventLoop& loop, std::string path,
                                                                     OnPeer on_peer) {
  std::unique_ptr<SeqpacketListener> listener(new SeqpacketListener(loop, std::move(path), std::move(on_peer)));
  MONARCH_TRY(listener->open());
  return listener;
}

SeqpacketListener::SeqpacketListener(EventLoop& loop, std::string path, OnPeer on_peer)
    : loop_(loop), path_(std::move(path)), on_peer_(std::move(on_peer)) {}

SeqpacketListener::~SeqpacketListener() {
  if (watch_) loop_.forget(*watch_);
  if (resume_timer_) loop_.cancel(*resume_timer_);
  struct stat status {};
  if (inode_ != 0 && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    (void)::unlink(path_.c_str());  // what stays is stale and replaced by the next
  }
}

Status SeqpacketListener::open() {
  MONARCH_ASSIGN(const sockaddr_un address, unix_address(path_));
  MONARCH_TRY(remove_stale(path_));
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("socket", errno);
  // bind() gives the file the socket's mode less the umask: it never exists with a wider one.
  if (::fchmod(socket.get(), 0600) != 0) return errno_error("setting a socket's mode", errno);
  const std::string what = text("listening at ", printable(path_));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return errno_error(what, errno);
  }
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0) return errno_error(what, errno);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  // A umask that takes bits from the owner would lock us out.
  if ((status.st_mode & 07777U) != 0600 && ::chmod(path_.c_str(), 0600) != 0) return errno_error(what, errno);
  if (::listen(socket.get(), kBacklog) != 0) return errno_error(what, errno);
  MONARCH_ASSIGN(watch_, loop_.watch(socket.get(), Interest::kRead, [this](Readiness) { accept_waiting(); }));
  socket_ = std::move(socket);
  return {};
}

void SeqpacketListener::accept_waiting() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.valid()) {
      // WARNING: without a free descriptor the socket stays readable and accept fails for ever: wait for one.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause();
      return;  // EAGAIN: nobody waits. ECONNABORTED and EINTR: the loop comes back.
    }
    const auto credentials = peer_credentials(peer.get());
    if (!credentials.ok() || credentials->uid != ::geteuid()) {
      ++refused_;
      continue;
    }
    on_peer_(std::move(peer), *credentials);
  }
}

void SeqpacketListener::pause() {
  loop_.change(*watch_, Interest::kNone);
  resume_timer_ = loop_.at(loop_.now() + kPauseWithoutDescriptors, [this] {
    resume_timer_.reset();
    loop_.change(*watch_, Interest::kRead);
  });
}

}  // namespace monarch
