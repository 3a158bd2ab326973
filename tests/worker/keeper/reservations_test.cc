#include "worker/keeper/reservations.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/worker/keeper/made_up_host.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

class ReservationsOf : public MadeUpHost {
 protected:
  ReservationsOptions job(const std::string& id) const { return {"v1", id, {root_ + "/run"}, root_}; }
  static Reserve order(std::uint32_t count, std::vector<std::uint16_t> fixed = {}, std::vector<std::string> gpus = {},
                       std::uint64_t counter = 1) {
    Reserve order;
    order.generation = {Term(1), counter};
    order.count = count;
    order.fixed = std::move(fixed);
    order.gpus = std::move(gpus);
    return order;
  }
  static Reservations::Key key_of(const Reserve& order) { return {order.mesh, order.gang, order.generation}; }
  // A listener on a port of the kernel's choice.
  static UniqueFd listener(std::uint16_t& port) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::listen(socket.get(), 1), 0);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    return socket;
  }
  // One that nobody has at this moment.
  static std::uint16_t free_port() { return bind_port(0).value().number; }
  static bool can_bind(std::uint16_t port) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  static std::string refusal(const Result<std::vector<std::uint16_t>>& answer) {
    return answer ? "granted" : answer.error().message;
  }
};

TEST_F(ReservationsOf, AnswerPortsOfTheirChoiceAndThenTheFixedOnesAndAgainTheSame) {
  Reservations reservations(job("mine-1a2b"));
  const std::uint16_t fixed = free_port();
  const auto ports = reservations.hold(order(2, {fixed}));
  ASSERT_TRUE(ports.ok()) << ports.error().message;
  ASSERT_EQ(ports->size(), 3U);
  EXPECT_EQ((*ports)[2], fixed);
  for (const std::uint16_t port : *ports) EXPECT_FALSE(can_bind(port));
  EXPECT_EQ(reservations.hold(order(1)).value(), *ports);
  reservations.release(key_of(order(0)));
  for (const std::uint16_t port : *ports) EXPECT_TRUE(can_bind(port));
}

TEST_F(ReservationsOf, ChooseOutOfARangeInTurnAndPassOverWhatIsTaken) {
  // Six in a row that nobody has, below those of the kernel's choice.
  std::uint16_t first = 0;
  for (std::uint16_t start = 20'000; start < 30'000 && first == 0; start += 6) {
    bool free = true;
    for (std::uint16_t i = 0; i < 6; ++i) free = free && can_bind(static_cast<std::uint16_t>(start + i));
    if (free) first = start;
  }
  ASSERT_NE(first, 0);
  const auto at = [first](int i) { return static_cast<std::uint16_t>(first + i); };
  const auto out_of = [&](std::uint32_t count, std::uint64_t counter) {
    Reserve wanted = order(count, {}, {}, counter);
    wanted.first_port = first;
    wanted.last_port = at(5);
    wanted.spared = {at(1)};
    return wanted;
  };
  Reservations other(job("other-3c4d"));
  ASSERT_TRUE(other.hold(order(0, {at(2)})).ok());
  const UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(at(3));
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  Reservations mine(job("mine-1a2b"));
  using Ports = std::vector<std::uint16_t>;
  EXPECT_EQ(mine.hold(out_of(1, 1)).value(), (Ports{at(0)}));
  EXPECT_EQ(mine.hold(out_of(1, 2)).value(), (Ports{at(4)}));
  mine.release(key_of(out_of(1, 1)));
  EXPECT_EQ(mine.hold(out_of(1, 3)).value(), (Ports{at(5)})) << "the first has had its turn";
  EXPECT_EQ(mine.hold(out_of(1, 4)).value(), (Ports{at(0)}));
  EXPECT_EQ(refusal(mine.hold(out_of(1, 5))),
            text("host v1 has no free port left of ", first, "-", at(5),
                 " (network.ports), of which this job holds what its other gangs have"));
  other.release(key_of(order(0)));
  EXPECT_EQ(mine.hold(out_of(1, 6)).value(), (Ports{at(2)})) << "what was passed over is not locked";
}

TEST_F(ReservationsOf, NameTheProcessThatHasAFixedPort) {
  Reservations reservations(job("mine-1a2b"));
  std::uint16_t port = 0;
  const UniqueFd taken = listener(port);
  EXPECT_EQ(refusal(reservations.hold(order(1, {port}))), "port " + std::to_string(port) +
                                                              " of host v1 is taken by worker-keeper-p (pid " +
                                                              std::to_string(::getpid()) + ")");
}

TEST_F(ReservationsOf, NameTheJobThatHasReservedAFixedPort) {
  Reservations other(job("other-3c4d"));
  Reservations mine(job("mine-1a2b"));
  const std::uint16_t port = free_port();
  ASSERT_TRUE(other.hold(order(0, {port})).ok());
  EXPECT_EQ(refusal(mine.hold(order(0, {port}))), "port " + std::to_string(port) +
                                                      " of host v1 is held by job other-3c4d (pid " +
                                                      std::to_string(::getpid()) + ")");
  other.release(key_of(order(0)));
  EXPECT_TRUE(mine.hold(order(0, {port})).ok());
}

TEST_F(ReservationsOf, GiveALaterGenerationTheSameFixedPort) {
  Reservations reservations(job("mine-1a2b"));
  const std::uint16_t port = free_port();
  ASSERT_TRUE(reservations.hold(order(1, {port}, {"GPU-a"}, 1)).ok());
  const auto later = reservations.hold(order(1, {port}, {"GPU-a"}, 2));
  ASSERT_TRUE(later.ok()) << later.error().message;
  EXPECT_EQ((*later)[1], port);
  reservations.release(key_of(order(0, {}, {}, 1)));
  EXPECT_FALSE(can_bind(port));
  Reservations other(job("other-3c4d"));
  EXPECT_FALSE(other.hold(order(0, {}, {"GPU-a"})).ok());
}

TEST_F(ReservationsOf, RefuseAGpuThatAnotherJobHasByName) {
  gpu("0000:3b:00.0", "GPU-a1a1", 0, "0");
  gpu("0000:86:00.0", "GPU-b1b1", 1, "1");
  Reservations other(job("other-3c4d"));
  Reservations mine(job("mine-1a2b"));
  ASSERT_TRUE(other.hold(order(1, {}, {"GPU-b1b1"})).ok());
  EXPECT_EQ(refusal(mine.hold(order(1, {}, {"GPU-a1a1", "GPU-b1b1"}))),
            "GPU 1 (GPU-b1b1) of host v1 is held by job other-3c4d (pid " + std::to_string(::getpid()) + ")");
  other.release(key_of(order(0)));
  EXPECT_TRUE(mine.hold(order(1, {}, {"GPU-a1a1", "GPU-b1b1"})).ok());
}

TEST_F(ReservationsOf, HoldAllOfAnOrderOrNothing) {
  Reservations mine(job("mine-1a2b"));
  std::uint16_t taken = 0;
  const UniqueFd listening = listener(taken);
  const std::uint16_t free = free_port();
  EXPECT_FALSE(mine.hold(order(1, {free, taken}, {"GPU-a"})).ok());
  EXPECT_TRUE(can_bind(free));
  Reservations other(job("other-3c4d"));
  EXPECT_TRUE(other.hold(order(1, {}, {"GPU-a"})).ok());
}

TEST_F(ReservationsOf, TakeNoNameThatLeadsElsewhere) {
  Reservations mine(job("mine-1a2b"));
  EXPECT_EQ(refusal(mine.hold(order(1, {}, {"../../GPU-a"}))), "`gpu-../../GPU-a` names nothing that can be held");
  EXPECT_FALSE(std::filesystem::exists(root_ + "/run"));
}

TEST_F(ReservationsOf, LeaveAPortToWhomItIsHandedOver) {
  Reservations reservations(job("mine-1a2b"));
  const auto ports = reservations.hold(order(2)).value();
  const auto sockets = reservations.sockets(key_of(order(0)), {ports[1]});
  ASSERT_EQ(sockets.size(), 1U);
  reservations.hand_over(key_of(order(0)), {ports[1]});
  EXPECT_TRUE(can_bind(ports[1]));
  EXPECT_FALSE(can_bind(ports[0]));
  EXPECT_EQ(reservations.hold(order(2)).value(), ports);
  EXPECT_TRUE(reservations.sockets(key_of(order(0)), {ports[1]}).empty());
}

}  // namespace
}  // namespace monarch
