#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>

#include <cstdlib>
#include <string_view>

#include "tests/worker/keeper/keeper_fixture.h"
#include "worker/keeper/keeper.h"

extern char** environ;

namespace monarch {

int run_as_keeper() {
  KeeperSetup setup;
  setup.job = job_of(kStandInMark, ::getppid());
  setup.job_id = "mine-1a2b";
  setup.host_name = "v1";
  setup.lock_directories = {std::string(std::getenv(kDoorVariable)) + "-locks"};
  setup.environment = environment_from(environ);
  setup.cgroups = std::getenv("MONARCH_NO_CGROUP") != nullptr ? CgroupUse::kNever : CgroupUse::kIfWritable;
  setup.guarded.executable = "/proc/self/exe";
  setup.guarded.program = {"door", "as-door"};
  setup.guarded.environment = environment_lines(setup.environment);
  setup.guarded.descriptors = {{STDERR_FILENO, STDERR_FILENO}};
  setup.stash = "the first stash";
  setup.tree = std::string(std::getenv(kDoorVariable)) + "-tree";
  if (const char* sockets = std::getenv(kSocketsVariable)) {
    setup.doors = {.directory = sockets, .job_id = "demo-1a2b", .host_name = "v1"};
  }
  auto keeper = Keeper::create(std::move(setup));
  return keeper ? keeper.value()->run() : 99;
}

int run_as_door() {
  const UniqueFd control(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, std::getenv(kDoorVariable), sizeof address.sun_path - 1);
  if (::connect(control.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return 98;
  char byte = 0;
  iovec piece{&byte, 1};
  alignas(cmsghdr) char buffer[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = buffer;
  message.msg_controllen = sizeof buffer;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int channel = std::atoi(std::getenv("MONARCH_KEEPER_FD"));
  std::memcpy(CMSG_DATA(header), &channel, sizeof channel);
  if (::sendmsg(control.get(), &message, 0) != 1) return 97;
  (void)::close(channel);
  if (const char* ready = std::getenv("MONARCH_TEST_READY_FD")) {
    if (::write(std::atoi(ready), "ready", 5) != 5) return 96;
  }
  unsigned char code = 0;
  return ::read(control.get(), &code, 1) == 1 ? code : 0;
}

// Listens on a port as who asks for no reuse does: 0 where it could.
int run_as_server(const char* port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return errno;
  return ::listen(socket.get(), 1) == 0 ? 0 : errno;
}

}  // namespace monarch

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "as-keeper") return monarch::run_as_keeper();
  if (mode == "as-door") return monarch::run_as_door();
  if (mode == "as-server" && argc > 2) return monarch::run_as_server(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
