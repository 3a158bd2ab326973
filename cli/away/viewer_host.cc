#include "cli/away/viewer_host.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "cli/away/glance_at_job.h"
#include "transport/base/text.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {

namespace {

constexpr std::size_t kLent = 2;  // descriptors: in and out

struct LentMessage {
  std::uint64_t taken = 0;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kLent)> control{};
};

struct Lent {
  std::uint64_t taken = 0;
  UniqueFd in;
  UniqueFd out;
};

Status send_lent(int socket, std::uint64_t taken, int in, int out) {
  LentMessage message{.taken = taken};
  iovec body{.iov_base = &message.taken, .iov_len = sizeof message.taken};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  header.msg_control = message.control.data();
  header.msg_controllen = message.control.size();
  cmsghdr* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int) * kLent);
  const std::array<int, kLent> descriptors = {in, out};
  std::memcpy(CMSG_DATA(control), descriptors.data(), sizeof descriptors);
  if (::sendmsg(socket, &header, MSG_NOSIGNAL) < 0) return errno_error(ErrorCode::kGone, "sendmsg", errno);
  return {};
}

// Nothing where anything else came than send_lent() sends.
std::optional<Lent> receive_lent(int socket) {
  LentMessage message;
  iovec body{.iov_base = &message.taken, .iov_len = sizeof message.taken};
  msghdr header{};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  header.msg_control = message.control.data();
  header.msg_controllen = message.control.size();
  const long got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  std::vector<UniqueFd> descriptors;
  for (cmsghdr* control = got < 0 ? nullptr : CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= control->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  if (got != static_cast<long>(sizeof message.taken) || descriptors.size() != kLent) return std::nullopt;
  return Lent{.taken = message.taken, .in = std::move(descriptors[0]), .out = std::move(descriptors[1])};
}

bool is_columns(std::uint64_t number) { return number <= UINT16_MAX; }

}  // namespace

Result<std::unique_ptr<ViewerHost>> ViewerHost::start(EventLoop& loop, ViewerHostOptions options) {
  std::unique_ptr<ViewerHost> host(new ViewerHost(loop, std::move(options)));
  ViewerHost* self = host.get();
  ViewerOrder& order = self->options_.order;
  if (order.junit || order.artifacts) {
    MONARCH_ASSIGN(host->reports_, ReportFolder::create(text(order.job, ".", ::getpid())));
    if (order.junit) order.words.push_back(text("--junit=", host->reports_->junit()));
    if (order.artifacts) order.words.push_back(text("--artifacts=", host->reports_->artifacts()));
  }
  MONARCH_ASSIGN(host->child_,
                 ViewerChild::start(loop, self->options_.program, self->options_.env, self->options_.order,
                                    {.on_bytes = [self](ViewerFrameKind stream,
                                                        std::string_view bytes) { self->on_bytes(stream, bytes); },
                                     .on_ended = [self](const ExitStatus& status) { self->on_ended(status); }}));
  if (self->options_.socket.empty()) return host;
  MONARCH_ASSIGN(host->listener_,
                 SeqpacketListener::create(loop, self->options_.socket, [self](UniqueFd from, PeerCredentials) {
                   self->take_over(std::move(from));
                 }));
  return host;
}

ViewerHost::~ViewerHost() = default;

Status ViewerHost::serve(UniqueFd in, UniqueFd out) {
  link_.reset();
  MONARCH_ASSIGN(link_, ViewerLink::open(loop_, std::move(in), std::move(out), outbox_,
                                         {.on_frame = [this](const ViewerFrame& frame) { return on_frame(frame); },
                                          .on_lost = [this](const Error& why) { on_lost(why); }}));
  outbox_.put(ViewerFrameKind::kWelcome,
              encode_welcome({.token = options_.token, .heard = heard_, .version = MONARCH_VERSION}));
  link_->flush();
  return {};
}

// The listener has made sure that it is of our user.
void ViewerHost::take_over(UniqueFd from) {
  pollfd wait{.fd = from.get(), .events = POLLIN, .revents = 0};
  constexpr int kSaysSoWithin = 1000;  // it sends in the breath in which it connects
  if (::poll(&wait, 1, kSaysSoWithin) <= 0) return;
  auto lent = receive_lent(from.get());
  if (!lent) return;
  // Of the connection before, whose end may come much later, or never, nothing counts any more.
  link_.reset();
  if (!outbox_.taken(lent->taken).ok()) return on_lost({ErrorCode::kInvalid, "it took what was never sent"});
  if (lingering_ != 0) loop_.cancel(std::exchange(lingering_, 0));
  borrowed_from_ = std::move(from);
  if (const Status served = serve(std::move(lent->in), std::move(lent->out)); !served.ok())
    return on_lost(served.error());
  after_put();
}

Status ViewerHost::on_frame(const ViewerFrame& frame) {
  if (is_counted(frame.kind)) {
    outbox_.put(ViewerFrameKind::kTaken, encode_numbers({++heard_}));
    link_->flush();
  }
  switch (frame.kind) {
    case ViewerFrameKind::kSignal: {
      MONARCH_ASSIGN(const auto number, decode_numbers(frame.payload, 1));
      if (number[0] == 0 || number[0] >= NSIG) return Error{ErrorCode::kInvalid, "a signal that there is not"};
      child_->signal(static_cast<int>(number[0]));
      return {};
    }
    case ViewerFrameKind::kWindow: {
      MONARCH_ASSIGN(const auto columns, decode_numbers(frame.payload, 2));
      if (!is_columns(columns[0]) || !is_columns(columns[1])) return Error{ErrorCode::kInvalid, "a window too wide"};
      child_->resize({.out = static_cast<std::uint32_t>(columns[0]), .err = static_cast<std::uint32_t>(columns[1])});
      return {};
    }
    case ViewerFrameKind::kClosed: {
      MONARCH_ASSIGN(const auto stream, decode_numbers(frame.payload, 1));
      child_->close(stream[0] == STDOUT_FILENO ? ViewerFrameKind::kOut : ViewerFrameKind::kErr);
      return {};
    }
    case ViewerFrameKind::kTaken: {
      MONARCH_ASSIGN(const auto count, decode_numbers(frame.payload, 1));
      MONARCH_TRY(outbox_.taken(count[0]));
      after_put();
      return {};
    }
    case ViewerFrameKind::kPing:
      outbox_.put(ViewerFrameKind::kPong);
      link_->flush();
      return {};
    case ViewerFrameKind::kOrder:
    case ViewerFrameKind::kWelcome:
    case ViewerFrameKind::kRefused:
    case ViewerFrameKind::kOut:
    case ViewerFrameKind::kErr:
    case ViewerFrameKind::kFile:
    case ViewerFrameKind::kFileBytes:
    case ViewerFrameKind::kEnd:
    case ViewerFrameKind::kPong: break;
  }
  return Error{ErrorCode::kInvalid, "a frame out of its turn"};
}

// By the link or its owner; the link goes when the turn is over.
void ViewerHost::on_lost(const Error&) {
  loop_.defer([this, gone = std::shared_ptr<ViewerLink>(std::move(link_))] { borrowed_from_.reset(); });
  const Duration lingers = Duration::seconds(static_cast<std::int64_t>(options_.order.lingers));
  if (options_.socket.empty() || lingers == Duration::zero() || (ended_ && outbox_.done())) return leave();
  if (lingering_ == 0) lingering_ = loop_.at(loop_.now() + lingers, [this] { leave(); });
}

void ViewerHost::on_bytes(ViewerFrameKind stream, std::string_view bytes) {
  outbox_.put(stream, bytes);
  after_put();
}

void ViewerHost::on_ended(const ExitStatus& status) {
  status_ = status;
  after_put();
}

// After all that it showed; as much at a time as may be on its way.
void ViewerHost::send_reports() {
  while (reports_ != nullptr && !outbox_.full()) {
    auto frame = reports_->next();
    frame ? outbox_.put(frame->kind, frame->payload) : reports_.reset();
  }
  if (reports_ != nullptr) return;
  ended_ = true;
  outbox_.put(ViewerFrameKind::kEnd, encode_end({.exit_code = status_->signaled ? 0 : status_->value,
                                                 .signal = status_->signaled ? status_->value : 0,
                                                 .job = glance_at_job(options_.order.job)}));
}

void ViewerHost::after_put() {
  if (status_ && !ended_) send_reports();
  if (link_ != nullptr) link_->flush();
  if (ended_ && outbox_.done()) return leave();
  if (outbox_.full() == paused_) return;
  paused_ = outbox_.full();
  paused_ ? child_->pause() : child_->resume();
}

void ViewerHost::leave() { loop_.stop(); }

Status lend_connection(const std::string& socket, std::uint64_t taken, int in, int out) {
  MONARCH_ASSIGN(const UniqueFd host, connect_seqpacket(socket));
  MONARCH_TRY(send_lent(host.get(), taken, in, out));
  pollfd wait{.fd = host.get(), .events = POLLIN, .revents = 0};
  while (::poll(&wait, 1, -1) < 0 && errno == EINTR) continue;
  return {};
}

}  // namespace monarch
