#pragma once

// The list of every message struct that travels, for tests that hold for all of them; arbitrary() makes random values.
//
// Thread: pure functions.

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "transport/wire/launch_messages.h"
#include "transport/wire/messages.h"
#include "transport/wire/stack_messages.h"
#include "transport/wire/viewer_messages.h"

namespace monarch {

using EveryMessage =
    std::tuple<Hello, Beat, Ack, Reserve, Reserved, Start, Stop, Signal, Shutdown, Tell, Output, KeeperHello,
               KeeperPipes, KeeperPing, KeeperPong, KeeperChanged, KeeperStash, KeeperLease, KeeperForget, KeeperSpawn,
               KeeperShutdown, Bootstrap, BootstrapReply, JobEvent, Verdict, JobStatus, Attach, StatusRequest,
               StopRequest, SignalRequest, ViewerOutput, Accepted, Refused, KeeperReady, OutputFrom, OutputGone,
               Goodbye, KeeperEnded, StartThere, StartedThere, LauncherHello, HostLaunched, HostNotLaunched, HostEnded,
               LauncherWelcome, LaunchHost, EndHost, HostSaidGoodbye, LeaveLauncher, TakeStacks, Stacks, StacksRequest,
               RankStacks, OperatorRequest, HoldRequest, CommitAnswer, KeeperGone, VaultTable, VaultReport, VaultSetup,
               VaultOffer, VaultKept, VaultAsk, VaultPiece, KeeperLetLive, KeeperWarned, KeeperPipesTaken>;
inline constexpr std::size_t kMessages = std::tuple_size_v<EveryMessage>;
inline constexpr std::array<const char*, kMessages> kMessageNames{"hello",
                                                                  "beat",
                                                                  "ack",
                                                                  "reserve",
                                                                  "reserved",
                                                                  "start",
                                                                  "stop",
                                                                  "signal",
                                                                  "shutdown",
                                                                  "tell",
                                                                  "output",
                                                                  "keeper-hello",
                                                                  "keeper-pipes",
                                                                  "keeper-ping",
                                                                  "keeper-pong",
                                                                  "keeper-changed",
                                                                  "keeper-stash",
                                                                  "keeper-lease",
                                                                  "keeper-forget",
                                                                  "keeper-spawn",
                                                                  "keeper-shutdown",
                                                                  "bootstrap",
                                                                  "bootstrap-reply",
                                                                  "event",
                                                                  "verdict",
                                                                  "status",
                                                                  "attach",
                                                                  "status-request",
                                                                  "stop-request",
                                                                  "signal-request",
                                                                  "viewer-output",
                                                                  "accepted",
                                                                  "refused",
                                                                  "keeper-ready",
                                                                  "output-from",
                                                                  "output-gone",
                                                                  "goodbye",
                                                                  "keeper-ended",
                                                                  "start-there",
                                                                  "started-there",
                                                                  "launcher-hello",
                                                                  "host-launched",
                                                                  "host-not-launched",
                                                                  "host-ended",
                                                                  "launcher-welcome",
                                                                  "launch-host",
                                                                  "end-host",
                                                                  "host-said-goodbye",
                                                                  "leave-launcher",
                                                                  "take-stacks",
                                                                  "stacks",
                                                                  "stacks-request",
                                                                  "rank-stacks",
                                                                  "operator-request",
                                                                  "hold-request",
                                                                  "commit-answer",
                                                                  "keeper-gone",
                                                                  "vault-table",
                                                                  "vault-report",
                                                                  "vault-setup",
                                                                  "vault-offer",
                                                                  "vault-kept",
                                                                  "vault-ask",
                                                                  "vault-piece",
                                                                  "keeper-let-live",
                                                                  "keeper-warned",
                                                                  "keeper-pipes-taken"};

// Calls visit(T{}) for the struct at `index` of the list.
template <class Visit, std::size_t I = 0>
void visit_message(std::size_t index, Visit&& visit) {
  if constexpr (I < kMessages) {
    if (index == I) return visit(std::tuple_element_t<I, EveryMessage>{});
    visit_message<Visit, I + 1>(index, std::forward<Visit>(visit));
  }
}

class Arbitrary {
 public:
  explicit Arbitrary(std::uint64_t seed) : random_(seed) {}

  void fill(bool& value) { value = below(2) == 1; }
  void fill(std::string& value) {
    value.resize(length(300));
    for (char& c : value) c = static_cast<char>(below(256));
  }
  void fill(JobUuid& value) {
    for (std::uint8_t& byte : value.bytes) byte = static_cast<std::uint8_t>(below(256));
  }
  void fill(Duration& value) { value = Duration::nanoseconds(number<std::int64_t>()); }
  void fill(Instant& value) { value = Instant::since_boot(Duration::nanoseconds(number<std::int64_t>())); }
  template <class Tag, class Int>
  void fill(StrongId<Tag, Int>& value) {
    value = StrongId<Tag, Int>(number<Int>());
  }
  template <class T>
  void fill(std::vector<T>& values) {
    values.resize(length(20));
    for (T& value : values) fill(value);
  }
  template <class T>
  void fill(std::map<std::string, T>& values) {
    for (std::size_t i = length(20); i > 0; --i) {
      std::pair<std::string, T> entry;
      fill(entry);
      values.insert(std::move(entry));
    }
  }
  template <class A, class B>
  void fill(std::pair<A, B>& value) {
    fill(value.first);
    fill(value.second);
  }
  template <class T>
  void fill(std::optional<T>& value) {
    if (below(2) == 1) fill(value.emplace());
  }
  template <class T>
  void fill(T& value) {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(below(static_cast<std::uint64_t>(monarch_enum_max(value)) + 1));
    } else if constexpr (std::is_integral_v<T>) {
      value = number<T>();
    } else {
      std::apply([this](auto&... field) { (this->fill(field), ...); }, codec::detail::fields_of(value));
    }
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  // Short mostly, now and then up to `most`.
  std::size_t length(std::size_t most) { return below(below(8) == 0 ? most + 1 : 4); }
  // The widths of MessagePack and their edges.
  template <class Int>
  Int number() {
    const std::uint64_t bits = random_() >> below(64);
    switch (below(4)) {
      case 0: return static_cast<Int>(bits);
      case 1: return static_cast<Int>(~bits);
      case 2: return static_cast<Int>((std::uint64_t{1} << below(64)) - below(2));
      default: return below(2) == 0 ? std::numeric_limits<Int>::min() : std::numeric_limits<Int>::max();
    }
  }

  std::mt19937_64 random_;
};

}  // namespace monarch
