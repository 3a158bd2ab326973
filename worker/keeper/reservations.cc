#include "worker/keeper/reservations.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"
#include "transport/process/nvidia_gpus.h"
#include "worker/keeper/port_holder.h"

namespace monarch {

namespace {

bool is_among(const std::vector<std::uint16_t>& ports, const BoundPort& port) {
  return std::find(ports.begin(), ports.end(), port.number) != ports.end();
}

// "GPU 0 (GPU-8932…)", as nvidia-smi counts.
std::string words_for(const std::string& uuid, const std::string& root) {
  for (const NvidiaGpu& gpu : read_nvidia_gpus(root)) {
    if (gpu.uuid == uuid) return text("GPU ", gpu.index, " (", uuid, ')');
  }
  return text("GPU ", printable(uuid));
}

}  // namespace

Result<std::vector<std::uint16_t>> Reservations::hold(const Reserve& order) {
  const Key key{order.mesh, order.gang, order.generation};
  auto held = held_.find(key);
  if (held == held_.end()) {
    Held taken;
    if (Status all = take(order, taken); !all) {
      unlock(taken);
      return std::move(all).error();
    }
    held = held_.emplace(key, std::move(taken)).first;
  }
  std::vector<std::uint16_t> numbers;
  for (const BoundPort& port : held->second.ports) numbers.push_back(port.number);
  return numbers;
}

Status Reservations::take(const Reserve& order, Held& held) {
  for (const std::string& uuid : order.gpus) MONARCH_TRY(take_gpu(uuid, held));
  for (std::uint32_t i = 0; i < order.count; ++i) {
    MONARCH_TRY(take_any(order, held));
  }
  for (const std::uint16_t number : order.fixed) MONARCH_TRY(take_port(number, held));
  return {};
}

// Of a range each port has its turn, so that one is not given again as long as there are others: somebody may still
// speak to whoever had it.
Status Reservations::take_any(const Reserve& order, Held& held) {
  if (order.first_port == 0) {
    MONARCH_ASSIGN(BoundPort port, bind_port(0));
    held.ports.push_back(std::move(port));
    return {};
  }
  const std::string range = text(order.first_port, '-', order.last_port);
  if (order.last_port < order.first_port) return Error{ErrorCode::kInvalid, text(range, " is no range of ports")};
  const std::uint32_t size = order.last_port - order.first_port + 1U;
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto number = static_cast<std::uint16_t>(order.first_port + looked_at_++ % size);
    const bool spared = std::find(order.spared.begin(), order.spared.end(), number) != order.spared.end();
    const bool ours = holds(number) || std::any_of(held.ports.begin(), held.ports.end(),
                                                   [number](const BoundPort& port) { return port.number == number; });
    if (spared || ours) continue;
    const std::size_t locked = held.locks.size();
    if (take_port(number, held).ok()) return {};
    for (; held.locks.size() > locked; held.locks.pop_back()) locks_.release(held.locks.back());
  }
  return Error{ErrorCode::kBusy, text("host ", options_.host_name, " has no free port left of ", range,
                                      " (network.ports), of which this job holds what its other gangs have")};
}

bool Reservations::holds(std::uint16_t number) const {
  return std::any_of(held_.begin(), held_.end(), [number](const auto& held) {
    return std::any_of(held.second.ports.begin(), held.second.ports.end(),
                       [number](const BoundPort& port) { return port.number == number; });
  });
}

// WARNING: two sockets with SO_REUSEADDR that do not listen may have the same port (socket(7)), so another keeper's
// reservation shows only by its lock.
Status Reservations::take_port(std::uint16_t number, Held& held) {
  const std::string words = text("port ", number);
  MONARCH_TRY(lock(text("port-", number), words, LockSharing::kNone, held));
  auto port = bind_port(number);
  if (port) {
    held.ports.push_back(std::move(port).value());
    return {};
  }
  if (port.error().code != ErrorCode::kBusy) return std::move(port).error();
  const auto holder = holder_of_port(number);
  return Error{ErrorCode::kBusy,
               text(words, " of host ", options_.host_name, " is taken",
                    holder ? text(" by ", printable(holder->program), " (pid ", holder->pid, ')') : std::string())};
}

Status Reservations::take_gpu(const std::string& uuid, Held& held) {
  return lock(text("gpu-", uuid), words_for(uuid, options_.root), LockSharing::kJob, held);
}

Status Reservations::lock(const std::string& thing, const std::string& words, LockSharing sharing, Held& held) {
  MONARCH_ASSIGN(const auto other, locks_.hold(thing, sharing));
  if (other) {
    return Error{ErrorCode::kBusy, text(words, " of host ", options_.host_name, " is held by job ",
                                        printable(other->job), " (pid ", other->pid, ')')};
  }
  held.locks.push_back(thing);
  return {};
}

void Reservations::unlock(const Held& held) {
  for (const std::string& thing : held.locks) locks_.release(thing);
}

std::vector<int> Reservations::sockets(const Key& key, const std::vector<std::uint16_t>& ports) const {
  std::vector<int> sockets;
  const auto held = held_.find(key);
  if (held == held_.end()) return sockets;
  for (const BoundPort& port : held->second.ports) {
    if (port.socket.valid() && is_among(ports, port)) sockets.push_back(port.socket.get());
  }
  return sockets;
}

void Reservations::hand_over(const Key& key, const std::vector<std::uint16_t>& ports) {
  const auto held = held_.find(key);
  if (held == held_.end()) return;
  for (BoundPort& port : held->second.ports) {
    if (is_among(ports, port)) port.socket.reset();
  }
}

void Reservations::release(const Key& key) {
  const auto held = held_.find(key);
  if (held == held_.end()) return;
  unlock(held->second);
  held_.erase(held);
}

}  // namespace monarch
