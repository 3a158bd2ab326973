#include "transport/tensor/verbs/open_verbs.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/machine.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/tensor/verbs/queue_words.h"

namespace monarch::tensor {

namespace {

struct alignas(4'096) Page {
  std::array<char, 4'096> bytes{};
};

Error unproven(const std::string& device, const std::string& why) {
  return {ErrorCode::kUnsupported, text(device, " does not READ from itself: ", why)};
}

Status wait_for_read(VerbsQueue& queue, const std::string& device) {
  const Instant until = boot_now() + kVerbsProof;
  for (;;) {
    MONARCH_ASSIGN(const auto done, queue.take(1));
    if (!done.empty() && done.front().error.empty()) return {};
    if (!done.empty()) return unproven(device, done.front().error);
    const Instant now = boot_now();
    if (now >= until) return unproven(device, text("nothing came within ", to_text(kVerbsProof)));
    MONARCH_TRY(queue.arm());
    MONARCH_ASSIGN(const auto since, queue.take(1));
    if (!since.empty()) return since.front().error.empty() ? Status() : unproven(device, since.front().error);
    pollfd waiting{queue.descriptor(), POLLIN, 0};
    (void)::poll(&waiting, 1, EventLoop::wait_milliseconds(now, until));  // a signal: it is all looked at again
    (void)queue.was_woken();                                              // it is armed anew
  }
}

}  // namespace

Status prove_device(VerbsDevice& device) {
  const std::string& name = device.facts().name;
  const auto from = std::make_unique<Page>();
  const auto into = std::make_unique<Page>();
  const std::string pattern = random_bytes(256);
  for (std::size_t i = 0; i < from->bytes.size(); ++i) from->bytes[i] = pattern[(i * 7 + i / 256) % pattern.size()];
  MONARCH_ASSIGN(const auto source, device.know(from->bytes.data(), sizeof *from, VerbsAccess::kReadByOthers));
  MONARCH_ASSIGN(const auto destination, device.know(into->bytes.data(), sizeof *into, VerbsAccess::kFilledHere));
  MONARCH_ASSIGN(OwnQueue serves, make_own_queue(device, 0, {}, {}));
  MONARCH_ASSIGN(OwnQueue reads, make_own_queue(device, 1, {}, gid_of(serves.address)));
  MONARCH_ASSIGN(const QueuePath there, meet_queues(serves.address, serves.gid_index, reads.address));
  MONARCH_ASSIGN(const QueuePath back, meet_queues(reads.address, reads.gid_index, serves.address));
  MONARCH_TRY(serves.queue->connect(there));
  MONARCH_TRY(reads.queue->connect(back));
  VerbsRead read{.into = into->bytes.data(), .local_key = destination->local_key()};
  read.remote_key = source->remote_key();
  read.bytes = sizeof *into;
  MONARCH_TRY(reads.queue->post(read));
  Status done = wait_for_read(*reads.queue, name);
  if (!done.ok()) {
    reads.queue->set_error();
    (void)reads.queue->take(1);
    return done;
  }
  if (from->bytes == into->bytes) return {};
  return unproven(name, "other bytes came");
}

VerbsEnd open_verbs(VerbsLibrary& library, const DeviceWish& wish) {
  const auto without = [](const Error& error) { return VerbsEnd{.device = nullptr, .why_not = error.message}; };
  const auto devices = library.devices();
  if (!devices.ok()) return without(devices.error());
  const auto choice = choose_device(*devices, wish);
  if (!choice.ok()) return without(choice.error());
  const DeviceFacts& facts = (*devices)[choice->device];
  auto device = library.open(facts, facts.ports[choice->port].number);
  if (!device.ok()) return without(device.error());
  const Status proven = prove_device(**device);
  if (!proven.ok()) return without(proven.error());
  return {.device = std::move(*device), .why_not = {}};
}

std::optional<std::uint32_t> own_node() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return std::nullopt;
  std::optional<std::uint32_t> node;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &cpus)) continue;
    const std::string folder = text("/sys/devices/system/cpu/cpu", cpu);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
    if (!entries) return std::nullopt;
    while (const dirent* const entry = ::readdir(entries.get())) {
      std::string_view name = entry->d_name;
      std::uint32_t number = 0;
      if (name.substr(0, 4) != "node") continue;
      name.remove_prefix(4);
      if (!take_number(name, number) || !name.empty()) continue;
      if (node && *node != number) return std::nullopt;
      node = number;
    }
  }
  return node;
}

}  // namespace monarch::tensor
