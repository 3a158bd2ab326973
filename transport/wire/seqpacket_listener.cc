#include "transport/wire/seqpacket_listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"

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
  listener->look_later();
  return listener;
}

SeqpacketListener::SeqpacketListener(EventLoop& loop, std::string path, OnPeer on_peer)
    : loop_(loop), file_(std::move(path)), on_peer_(std::move(on_peer)) {}

SeqpacketListener::~SeqpacketListener() {
  if (watch_) loop_.forget(*watch_);
  if (resume_timer_) loop_.cancel(*resume_timer_);
  loop_.cancel(look_timer_);
}

void SeqpacketListener::look_later() {
  look_timer_ = loop_.at(SocketFile::next_look(loop_.now()), [this] { look(); });
}

// Whoever is connected stays so.
void SeqpacketListener::look() {
  look_later();
  if (!file_.is_missing() || !open().ok()) return;  // where it fails now, the next look tries again
  log_warn(printable(file_.path()), " was removed by somebody else, and is there again");
}

Status SeqpacketListener::open() {
  MONARCH_TRY(remove_stale(file_.path()));
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("socket", errno);
  MONARCH_TRY(file_.bind(socket.get()));
  if (::listen(socket.get(), kBacklog) != 0) {
    return errno_error(text("listening at ", printable(file_.path())), errno);
  }
  if (watch_) loop_.forget(*watch_);
  MONARCH_ASSIGN(watch_, loop_.watch(socket.get(), Interest::kRead, [this](Readiness) { accept_waiting(); }));
  socket_ = std::move(socket);
  return {};
}

void SeqpacketListener::accept_waiting() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd peer(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.valid()) {
      if (errno == EMFILE && make_room_ && somebody_waits() && make_room_()) continue;
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

// accept() says that there is no descriptor before it looks whether it needs one.
bool SeqpacketListener::somebody_waits() const {
  pollfd listener{socket_.get(), POLLIN, 0};
  return ::poll(&listener, 1, 0) == 1;
}

void SeqpacketListener::pause() {
  loop_.change(*watch_, Interest::kNone);
  resume_timer_ = loop_.at(loop_.now() + kPauseWithoutDescriptors, [this] {
    resume_timer_.reset();
    loop_.change(*watch_, Interest::kRead);
  });
}

}  // namespace monarch
