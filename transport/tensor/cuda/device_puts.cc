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
constexpr std::size_t kMostLeft = 2;  // each has the bytes of a version

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
  const std::string why = text("has copied into it for ", to_text(kLeftPatience), " and more");
  for (Left& left : left_) give_up(std::make_shared<const Left>(std::move(left)), why);
}

void DevicePuts::give_up(std::shared_ptr<const Left> left, const std::string& why) {
  end_.say(text("monarch: memory of ", printable(name_), " is given up: ", names(left->devices), ' ', why));
  keep_for_ever(std::move(left));
}

Status DevicePuts::begin() {
  failure_ = {};
  tidy();
  if (left_.size() < kMostLeft) return {};
  return Error{ErrorCode::kBusy, text(names(left_.front().devices), " still copies into ", kMostLeft, " versions of ",
                                      printable(name_), " that were given up")};
}

Status DevicePuts::check(const DeviceMemory& from) {
  if (cuda_ == nullptr) {
    MONARCH_ASSIGN(cuda_, end_.find());
  }
  MONARCH_ASSIGN(const int device, cuda_->device_of(from.at));
  if (device == from.stream.device) return cuda_->check(from.stream);
  return Error{ErrorCode::kInvalid, text("its memory is on ", cuda_->device_name(device), ", and ", from.stream.device,
                                         " is given as its GPU")};
}

Status DevicePuts::put(const std::vector<Copy>& copies, const DeviceMemory& from, char* to) {
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
  const Status marked = mark(from.stream);  // of a put that has failed, too: a part of it is under way
  if (done.ok()) done = marked;
  if (failure_.ok()) failure_ = done;
  return done;
}

Status DevicePuts::mark(const CudaStream& stream) {
  auto event = cuda_->record(stream);
  if (!event.ok()) {
    if (event.error().code != ErrorCode::kDevice) unknown_.insert(stream.device);
    return Error{ErrorCode::kDevice, event.error().message};
  }
  const std::thread::id thread = stream.handle == kStreamOfThread ? std::this_thread::get_id() : std::thread::id();
  behind_.insert_or_assign({stream, thread}, std::move(*event));
  return {};
}

void DevicePuts::pin(Slot& slot) {
  if (cuda_ == nullptr || !end_.pins || slot.is_shown()) return;
  auto pin = cuda_->pin(slot.start(), slot.bytes());
  if (pin.ok()) return slot.pin(std::move(*pin));
  slot.pin(nullptr);
  if (std::exchange(said_unpinned_, true)) return;
  end_.say(
      text("monarch: ", printable(name_),
           " is copied from GPUs by way of the driver's own memory, at half the speed or less: ", pin.error().message));
}

Status DevicePuts::wait(std::uint64_t version, Duration patience) {
  MONARCH_TRY(failure_);
  if (behind_.empty()) return {};
  const std::string words =
      text("version ", version, " of ", printable(name_), " waits for a stream of ", names(devices()));
  Status failed;
  const auto have_all_ended = [&] {
    while (!behind_.empty()) {
      const auto done = behind_.begin()->second->is_done();
      if (!done.ok()) failed = Error{ErrorCode::kDevice, done.error().message};
      if (!done.ok()) return true;
      if (!*done) return false;
      behind_.erase(behind_.begin());
    }
    return true;
  };
  const Instant begun = boot_now();
  Instant say_at = begun + kSays;
  const bool ended = look_until(begun + patience, have_all_ended, [&](Instant now) {
    if (now < say_at) return;
    say_at = now + kSays;
    end_.say(text("monarch: ", words, " since ", to_text(now - begun)));
  });
  if (!ended) return Error{ErrorCode::kTimeout, text(words, " for longer than ", to_text(patience))};
  return failed;
}

// Of what has failed nothing is under way: the driver says so of all that comes behind it.
bool DevicePuts::have_ended(Events& events) {
  return std::all_of(events.begin(), events.end(), [](const auto& event) {
    const auto done = event->is_done();
    return done.ok() ? *done : done.error().code == ErrorCode::kDevice;
  });
}

void DevicePuts::leave(std::shared_ptr<const void> memory) {
  Left left{.memory = std::move(memory), .events = {}, .devices = devices()};
  for (auto& [turn, event] : behind_) left.events.push_back(std::move(event));
  behind_.clear();
  if (!std::exchange(unknown_, {}).empty()) {
    return give_up(std::make_shared<const Left>(std::move(left)), "may copy into it, and does not say for how long");
  }
  left_.push_back(std::move(left));
  tidy();
}

void DevicePuts::tidy() {
  std::erase_if(left_, [](Left& left) { return have_ended(left.events); });
}

std::set<int> DevicePuts::devices() const {
  std::set<int> all = unknown_;
  for (const auto& [turn, event] : behind_) all.insert(turn.stream.device);
  return all;
}

std::string DevicePuts::names(const std::set<int>& devices) {
  std::string all;
  for (const int device : devices) all += text(all.empty() ? "" : ", ", cuda_->device_name(device));
  return all;
}

}  // namespace monarch::tensor
