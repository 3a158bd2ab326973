#include "transport/tensor/cuda/device_puts.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/tensor/cuda/kept_for_ever.h"

namespace monarch::tensor {

namespace {

constexpr Duration kFirstLooks = Duration::microseconds(20);  // a copy takes no longer, as a rule
constexpr Duration kLooks = Duration::milliseconds(1);
constexpr Duration kLooksOften = Duration::milliseconds(2);
constexpr Duration kSays = Duration::seconds(30);
constexpr Duration kLeftPatience = Duration::seconds(5);

// Looks until `has_ended` or `until`, and calls each_time() between.
template <class HasEnded, class EachTime>
bool look_until(Instant until, const HasEnded& has_ended, const EachTime& each_time) {
  const Instant begun = boot_now();
  for (;;) {
    if (has_ended()) return true;
    const Instant now = boot_now();
    if (now >= until) return false;
    each_time(now);
    const Duration pause = now - begun < kLooksOften ? kFirstLooks : kLooks;
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause.count_nanoseconds()));
  }
}

}  // namespace

DevicePuts::~DevicePuts() {
  const auto all_ended = [this] {
    tidy();
    return left_.empty();
  };
  if (look_until(boot_now() + kLeftPatience, all_ended, [](Instant /*now*/) {})) return;
  for (Left& left : left_) {
    end_.say(text("monarch: memory of ", printable(name_), " is given up: ", names(left.devices),
                  " has copied into it for ", to_text(kLeftPatience), " and more"));
    keep_for_ever(std::make_shared<const Left>(std::move(left)));
  }
}

Status DevicePuts::check(const DeviceMemory& from) {
  if (cuda_ == nullptr) {
    MONARCH_ASSIGN(cuda_, end_.find());
  }
  MONARCH_ASSIGN(const int device, cuda_->device_of(from.at));
  if (device != from.stream.device) {
    return Error{ErrorCode::kInvalid, text("its memory is on ", cuda_->device_name(device), ", and ",
                                           from.stream.device, " is given as its GPU")};
  }
  return streams_.contains(from.stream) ? Status() : cuda_->check(from.stream);
}

Status DevicePuts::put(const std::vector<Copy>& copies, const DeviceMemory& from, char* to) {
  streams_.insert(from.stream);
  Status done;
  for (const Copy& copy : copies) {
    for_each_run(copy, [&](std::uint64_t source, std::uint64_t destination, const Copy::Loop& loop) {
      if (!done.ok()) return;
      done = cuda_->to_host({.host = to + destination,
                             .device = const_cast<char*>(from.at) + source,
                             .row = copy.row,
                             .rows = loop.count,
                             .host_pitch = loop.destination,
                             .device_pitch = loop.source},
                            from.stream);
    });
  }
  return done;
}

void DevicePuts::pin(Slot& slot) {
  if (cuda_ == nullptr || !end_.pins || slot.is_pinned()) return;
  auto pin = cuda_->pin(slot.start(), slot.bytes());
  if (pin.ok()) return slot.pin(std::move(*pin));
  if (std::exchange(said_unpinned_, true)) return;
  end_.say(
      text("monarch: ", printable(name_),
           " is copied from GPUs by way of the driver's own memory, at half the speed or less: ", pin.error().message));
}

DevicePuts::Events DevicePuts::record_all(Status& failed) {
  Events events;
  for (const CudaStream& stream : streams_) {
    auto event = cuda_->record(stream);
    if (event.ok()) {
      events.push_back(std::move(*event));
    } else if (failed.ok()) {
      failed = event.error();
    }
  }
  return events;
}

Status DevicePuts::wait(std::uint64_t version, Duration patience) {
  if (streams_.empty()) return {};
  Status failed;
  Events events = record_all(failed);
  if (!failed.ok()) return failed;
  const auto have_all_ended = [&] {
    while (!events.empty()) {
      const auto done = events.back()->is_done();
      if (!done.ok()) failed = done.error();
      if (!done.ok()) return true;
      if (!*done) return false;
      events.pop_back();
    }
    return true;
  };
  const Instant begun = boot_now();
  std::set<int> devices;
  for (const CudaStream& stream : streams_) devices.insert(stream.device);
  const std::string words =
      text("version ", version, " of ", printable(name_), " waits for a stream of ", names(devices));
  Instant say_at = begun + kSays;
  const bool ended = look_until(begun + patience, have_all_ended, [&](Instant now) {
    if (now < say_at) return;
    say_at = now + kSays;
    end_.say(text("monarch: ", words, " since ", to_text(now - begun)));
  });
  if (!ended) return Error{ErrorCode::kTimeout, text(words, " for longer than ", to_text(patience))};
  if (!failed.ok()) return failed;
  streams_.clear();
  return {};
}

// Of what has failed nothing is under way: the driver says so of all that comes behind it.
bool DevicePuts::have_ended(Events& events) {
  return std::all_of(events.begin(), events.end(), [](const auto& event) {
    const auto done = event->is_done();
    return !done.ok() || *done;
  });
}

void DevicePuts::leave(std::shared_ptr<const void> memory) {
  if (streams_.empty()) return;
  Left left{.memory = std::move(memory), .events = {}, .devices = {}};
  Status failed;
  left.events = record_all(failed);
  for (const CudaStream& stream : streams_) left.devices.insert(stream.device);
  streams_.clear();
  left_.push_back(std::move(left));
  tidy();
}

void DevicePuts::tidy() {
  std::erase_if(left_, [](Left& left) { return have_ended(left.events); });
}

std::string DevicePuts::names(const std::set<int>& devices) {
  std::string all;
  for (const int device : devices) all += text(all.empty() ? "" : ", ", cuda_->device_name(device));
  return all;
}

}  // namespace monarch::tensor
