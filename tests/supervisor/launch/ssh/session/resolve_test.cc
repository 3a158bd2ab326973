// Names, and resolvers that say no, say nothing, or say it too late.

#include "supervisor/launch/ssh/session/resolve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/base/clock.h"
#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

SshTarget target_of(const std::string& address) {
  SshTarget target;
  target.address = address;
  target.port = 2222;
  target.connect_timeout = Duration::milliseconds(50);
  return target;
}

Patience within(Duration time, int cancel = -1) { return {time, cancel}; }

// A resolver that hangs until the test is over. Threads that were left with it end then.
class HungResolver {
 public:
  HungResolver() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    near_ = UniqueFd(ends_[1]);
  }
  LookUp look_up() const {
    return [fd = ends_[0]](const std::string&, const std::string&, addrinfo**) {
      char byte = 0;
      (void)!::read(fd, &byte, 1);  // until its other end is closed; this one is left to the process
      return EAI_AGAIN;
    };
  }

 private:
  int ends_[2] = {-1, -1};
  UniqueFd near_;
};

TEST(Resolve, AsksNobodyAboutANumber) {
  const auto asked = resolve(target_of("127.0.0.1"), within(Duration::seconds(5)),
                             [](const std::string&, const std::string&, addrinfo**) { return EAI_FAIL; });
  ASSERT_TRUE(std::holds_alternative<Addresses>(asked));
  EXPECT_NE(std::get<Addresses>(asked), nullptr);
}

TEST(Resolve, FindsAName) {
  addrinfo* known = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &known) != 0)
    GTEST_SKIP() << "localhost is no name here (/etc/hosts)";
  ::freeaddrinfo(known);
  const auto asked = resolve(target_of("localhost"), within(Duration::seconds(30)));
  ASSERT_TRUE(std::holds_alternative<Addresses>(asked)) << std::get<DialFailure>(asked).message;
}

TEST(Resolve, TellsWhatTheResolverAnswers) {
  const auto asked = resolve(target_of("gpu7"), within(Duration::seconds(30)),
                             [](const std::string& name, const std::string& port, addrinfo**) {
                               return name == "gpu7" && port == "2222" ? EAI_NONAME : EAI_FAIL;
                             });
  ASSERT_TRUE(std::holds_alternative<DialFailure>(asked));
  const DialFailure& failure = std::get<DialFailure>(asked);
  EXPECT_EQ(failure.kind, LaunchFailureKind::kName);
  EXPECT_EQ(failure.message, std::string("looking up gpu7: ") + ::gai_strerror(EAI_NONAME));
}

TEST(Resolve, LeavesAResolverThatDoesNotAnswerInTime) {
  const HungResolver hung;
  const auto asked = resolve(target_of("gpu7"), within(Duration::milliseconds(50)), hung.look_up());
  ASSERT_TRUE(std::holds_alternative<DialFailure>(asked));
  EXPECT_EQ(std::get<DialFailure>(asked).kind, LaunchFailureKind::kName);
  EXPECT_EQ(std::get<DialFailure>(asked).message, "looking up gpu7: the resolver did not answer within 50ms");
}

TEST(Resolve, CountsNoTimeInWhichItsOwnThreadWasLate) {
  const HungResolver hung;
  const Patience stood_still(Duration::milliseconds(50), -1, boot_now() - Duration::seconds(5));
  const auto asked = resolve(target_of("gpu7"), stood_still, hung.look_up());
  ASSERT_TRUE(std::holds_alternative<DialFailure>(asked));
  const std::string& said = std::get<DialFailure>(asked).message;
  const std::string begins = "looking up gpu7: the resolver did not answer within 50ms (this machine was late by ";
  EXPECT_EQ(said.substr(0, begins.size()), begins);
  EXPECT_FALSE(stood_still.over(boot_now() - Duration::seconds(1))) << "it was asked for the 50 ms that it had";
}

TEST(Resolve, LeavesItAtOnceWhenTheLaunchIsCancelled) {
  const HungResolver hung;
  const UniqueFd cancel(::eventfd(1, EFD_CLOEXEC));
  const auto asked = resolve(target_of("gpu7"), within(Duration::seconds(600), cancel.get()), hung.look_up());
  ASSERT_TRUE(std::holds_alternative<DialFailure>(asked));
  EXPECT_EQ(std::get<DialFailure>(asked).message, "looking up gpu7: cancelled");
}

TEST(Resolve, DoesNotAskForEver) {
  const HungResolver hung;
  std::string last;
  for (int i = 0; i < 600 && last.find("not asked again") == std::string::npos; ++i) {
    const auto asked = resolve(target_of("gpu7"), within(Duration::zero()), hung.look_up());
    ASSERT_TRUE(std::holds_alternative<DialFailure>(asked));
    last = std::get<DialFailure>(asked).message;
  }
  EXPECT_EQ(last, "looking up gpu7: the resolver has not answered 512 times: it is not asked again");
}

}  // namespace
}  // namespace monarch
