#include "tests/transport/wire/every_message.h"

#include <limits>
#include <map>
#include <optional>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "transport/messages/bootstrap.h"
#include "transport/messages/keeper.h"
#include "transport/messages/launch.h"
#include "transport/messages/message.h"
#include "transport/messages/output.h"
#include "transport/messages/post.h"
#include "transport/messages/rank.h"
#include "transport/messages/roster.h"
#include "transport/messages/stacks.h"
#include "transport/messages/vault.h"
#include "transport/messages/viewer.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

class Arbitrary {
 public:
  explicit Arbitrary(std::uint64_t seed) : random_(seed) {}

  void fill(bool& value) { value = below(2) == 1; }
  void fill(std::string& value) {
    value.resize(length(300));
    for (char& c : value) c = static_cast<char>(below(256));
  }
  void fill(codec::Bytes& value) { fill(value.data); }
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
      codec::detail::with_fields(value, [this](auto&... field) {
        (this->fill(field), ...);
        return true;
      });
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

template <class Message>
std::string arbitrary_payload(std::uint64_t seed) {
  Message message;
  Arbitrary(seed).fill(message);
  return encode_payload(message);
}

// Finds the lists of a message, as Stretcher does, and those that a field of its own type is travel as well.
class Repeater {
 public:
  Repeater(std::size_t which, std::size_t entries) : which_(which), entries_(entries) {}
  bool has_repeated() const { return seen_ > which_; }

  void visit(std::string& /*a text*/) {}
  void visit(codec::Bytes& /*bytes*/) {}
  template <class T>
  void visit(std::vector<T>& list) {
    const bool repeated = seen_++ == which_;
    list.assign(1, T{});
    visit(list.front());
    if (repeated) list.resize(entries_, list.front());
  }
  template <class T>
  void visit(std::map<std::string, T>& values) {
    const bool repeated = seen_++ == which_;
    T value{};
    visit(value);
    for (std::size_t i = 0; i < (repeated ? entries_ : 1); ++i) values.emplace(std::to_string(1'000'000 + i), value);
  }
  template <class T>
  void visit(std::optional<T>& value) {
    visit(value.emplace());
  }
  template <class A, class B>
  void visit(std::pair<A, B>& value) {
    visit(value.first);
    visit(value.second);
  }
  template <class Tag, class Int>
  void visit(StrongId<Tag, Int>& /*a number*/) {}
  template <class T>
  void visit(T& value) {
    if constexpr (std::is_class_v<T> && !codec::detail::Customized<T>) {
      codec::detail::with_fields(value, [this](auto&... field) {
        (this->visit(field), ...);
        return true;
      });
    }
  }

 private:
  std::size_t which_;
  std::size_t entries_;
  std::size_t seen_ = 0;
};

template <class Message>
std::optional<std::string> payload_with_many(std::size_t which, std::size_t entries) {
  Message message;
  Repeater repeater(which, entries);
  repeater.visit(message);
  if (!repeater.has_repeated()) return std::nullopt;
  return encode_payload(message);
}

template <class Message>
Result<std::string> payload_again(std::string_view payload, std::size_t limit) {
  const auto message = decode_payload<Message>(payload, limit);
  if (!message.ok()) return message.error();
  return encode_payload(*message);
}

template <class Message>
constexpr MessageKind kind(const char* name) {
  std::uint16_t number = 0;
  if constexpr (requires { monarch_message_number(std::type_identity<Message>{}); }) number = number_of<Message>();
  return {.name = name,
          .number = number,
          .arbitrary = &arbitrary_payload<Message>,
          .with_many = &payload_with_many<Message>,
          .again = &payload_again<Message>};
}

constexpr MessageKind kEveryMessage[] = {
    kind<Hello>("hello"),
    kind<Beat>("beat"),
    kind<Ack>("ack"),
    kind<Reserve>("reserve"),
    kind<Reserved>("reserved"),
    kind<Start>("start"),
    kind<Stop>("stop"),
    kind<Signal>("signal"),
    kind<Shutdown>("shutdown"),
    kind<Tell>("tell"),
    kind<Output>("output"),
    kind<KeeperHello>("keeper-hello"),
    kind<KeeperPipes>("keeper-pipes"),
    kind<KeeperPing>("keeper-ping"),
    kind<KeeperPong>("keeper-pong"),
    kind<KeeperChanged>("keeper-changed"),
    kind<KeeperStash>("keeper-stash"),
    kind<KeeperLease>("keeper-lease"),
    kind<KeeperForget>("keeper-forget"),
    kind<KeeperSpawn>("keeper-spawn"),
    kind<KeeperShutdown>("keeper-shutdown"),
    kind<Bootstrap>("bootstrap"),
    kind<BootstrapReply>("bootstrap-reply"),
    kind<JobEvent>("event"),
    kind<Verdict>("verdict"),
    kind<JobStatus>("status"),
    kind<Attach>("attach"),
    kind<StatusRequest>("status-request"),
    kind<StopRequest>("stop-request"),
    kind<SignalRequest>("signal-request"),
    kind<ViewerOutput>("viewer-output"),
    kind<Accepted>("accepted"),
    kind<Refused>("refused"),
    kind<KeeperReady>("keeper-ready"),
    kind<OutputFrom>("output-from"),
    kind<OutputGone>("output-gone"),
    kind<Goodbye>("goodbye"),
    kind<KeeperEnded>("keeper-ended"),
    kind<StartThere>("start-there"),
    kind<StartedThere>("started-there"),
    kind<LauncherHello>("launcher-hello"),
    kind<HostLaunched>("host-launched"),
    kind<HostNotLaunched>("host-not-launched"),
    kind<HostEnded>("host-ended"),
    kind<LauncherWelcome>("launcher-welcome"),
    kind<LaunchHost>("launch-host"),
    kind<EndHost>("end-host"),
    kind<HostSaidGoodbye>("host-said-goodbye"),
    kind<LeaveLauncher>("leave-launcher"),
    kind<TakeStacks>("take-stacks"),
    kind<Stacks>("stacks"),
    kind<StacksRequest>("stacks-request"),
    kind<RankStacks>("rank-stacks"),
    kind<OperatorRequest>("operator-request"),
    kind<HoldRequest>("hold-request"),
    kind<CommitAnswer>("commit-answer"),
    kind<KeeperGone>("keeper-gone"),
    kind<VaultTable>("vault-table"),
    kind<VaultReport>("vault-report"),
    kind<VaultSetup>("vault-setup"),
    kind<VaultOffer>("vault-offer"),
    kind<VaultKept>("vault-kept"),
    kind<VaultAsk>("vault-ask"),
    kind<VaultPiece>("vault-piece"),
    kind<KeeperLetLive>("keeper-let-live"),
    kind<KeeperWarned>("keeper-warned"),
    kind<KeeperPipesTaken>("keeper-pipes-taken"),
    kind<OutputUnkept>("output-unkept"),
    kind<ViewerUnkept>("viewer-unkept"),
    kind<KeeperKeepOpen>("keeper-keep-open"),
    kind<Roster>("roster"),
    kind<PostSetup>("post-setup"),
    kind<PostReport>("post-report"),
    kind<PostRankEnded>("post-rank-ended"),
    kind<PostHello>("post-hello"),
    kind<PostWelcome>("post-welcome"),
    kind<PostCall>("post-call"),
    kind<PostCancel>("post-cancel"),
    kind<PostAnswer>("post-answer"),
    kind<PostOver>("post-over"),
    kind<PostDeliver>("post-deliver"),
    kind<PostTakeBack>("post-take-back"),
    kind<PostReply>("post-reply"),
    kind<PostFailure>("post-failure"),
    kind<PostClosed>("post-closed"),
    kind<PostWait>("post-wait"),
    kind<PostRing>("post-ring"),
    kind<PostCard>("post-card"),
    kind<LineHello>("line-hello"),
    kind<LineAccepted>("line-accepted"),
    kind<LineOther>("line-other"),
    kind<LineResync>("line-resync"),
    kind<LineAsks>("line-asks"),
    kind<LineAnswer>("line-answer"),
    kind<LineTakeBack>("line-take-back"),
    kind<LineHeard>("line-heard"),
    kind<BodyLinkWord>("body-link-word"),
    kind<Input>("input"),
    kind<InputTaken>("input-taken"),
    kind<InputRequest>("input-request"),
    kind<DrillNotice>("drill-notice"),
    kind<PostAnswers>("post-answers"),
    kind<PostLetGo>("post-let-go"),
    kind<PostFree>("post-free"),
    kind<PostWish>("post-wish"),
    kind<PostGranted>("post-granted"),
    kind<ClaimAnswer>("claim-answer"),
    kind<LineAnswers>("line-answers"),
    kind<DoorRequest>("door-request"),
};

}  // namespace

std::span<const MessageKind> every_message() { return kEveryMessage; }

}  // namespace monarch
