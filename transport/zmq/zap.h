#pragma once

// ZapHandler: the thread that libzmq asks about every CURVE key (RFC 27, inproc://zeromq.zap.01), one per context. It
// answers with the User-Id of the table that its owner last handed over. What it decides is Admission's.
//
// It starts before the first bind and ends after the last ServerLink. Should its thread end otherwise, the process is
// aborted: without a handler libzmq 4.3.4 may let every key in.
//
// Thread: the owner's; it runs one of its own. Lifetime: within the context's.

#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <variant>

#include "transport/base/result.h"
#include "transport/loop/inbox.h"
#include "transport/zmq/admission.h"
#include "transport/zmq/context.h"
#include "transport/zmq/socket.h"

namespace monarch {

inline constexpr std::string_view kZapDomain = "monarch";

class ZapHandler {
 public:
  // kBusy: this context has a handler already.
  static Result<std::unique_ptr<ZapHandler>> start(ZmqContext& context, const Admission::Options& options = {});
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  // The whole table; it replaces the one before. Connections that stand are not touched: drop their messages by
  // User-Id. kBusy: the thread has not taken the last kTablesWaiting tables.
  Status replace(AllowTable table);

 private:
  struct Stop {};
  using Command = std::variant<AllowTable, Stop>;
  using Commands = Inbox<Command>;

  ZapHandler(std::unique_ptr<Commands> commands, std::unique_ptr<ZmqSocket> socket)
      : commands_(std::move(commands)), socket_(std::move(socket)) {}
  static void run(Commands& commands, ZmqSocket& socket, Admission::Options options);

  std::unique_ptr<Commands> commands_;
  std::unique_ptr<ZmqSocket> socket_;  // the thread's while it runs
  std::thread thread_;
};

// Proves, over loopback TCP and in some milliseconds, that a key of the table is let in and another one refused. It
// publishes a table of its own by `publish` (ZapHandler::replace), so it runs before the first real one. An error means
// that nothing may be bound.
Status zap_self_test(ZmqContext& context, const std::function<Status(AllowTable)>& publish);

}  // namespace monarch
