#include "transport/tensor/cuda/device_destination.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "transport/base/text.h"
#include "transport/tensor/cuda/kept_for_ever.h"

namespace monarch::tensor {

void DeviceDestination::Unmap::operator()(char* memory) const { (void)::munmap(memory, kRoomBytes); }

DeviceDestination::DeviceDestination(SharedCuda cuda, CudaEnd end, std::string name,
                                     std::vector<VerbsDestination::Span> parts)
    : cuda_(std::move(cuda)),
      end_(std::move(end)),
      name_(std::move(name)),
      parts_(std::move(parts)),
      rooms_(std::make_unique<Rooms>()) {
  void* const start = ::mmap(nullptr, kRoomBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  // What is shared with a child is copied where it is written next, and devices go on with the memory as it was.
  (void)::madvise(start, kRoomBytes, MADV_DONTFORK);
  rooms_->memory.reset(static_cast<char*>(start));
  for (std::size_t room = 0; room < kRooms; ++room) free_.push_back(rooms_->memory.get() + room * kPieceBytes);
  if (!end_.pins) return;
  auto pin = cuda_->pin(rooms_->memory.get(), kRoomBytes);
  if (pin.ok()) rooms_->pin = std::move(*pin);  // else copies from there are slower
}

DeviceDestination::~DeviceDestination() {
  if (!is_idle()) give_up();
}

Status DeviceDestination::begin(const std::set<int>& devices, std::uint64_t stream) {
  if (rooms_ == nullptr) {
    return Error{ErrorCode::kDevice,
                 text("an earlier run of this pull of ", name_, " was given up with copies under way")};
  }
  failure_ = {};
  stream_ = stream;
  for (const int device : devices) MONARCH_TRY(cuda_->check(stream_of(device)));
  return {};
}

std::optional<Destination::Room> DeviceDestination::room(const Piece& piece) {
  if (piece.device == kHostMemory) return Destination::room(piece);
  if (free_.empty()) return std::nullopt;
  Room room{free_.back(), piece.row};
  free_.pop_back();
  return room;
}

void DeviceDestination::drop(const Room& room) {
  if (rooms_ == nullptr) return;
  const char* const first = rooms_->memory.get();
  if (room.at >= first && room.at < first + kRoomBytes) free_.push_back(room.at);
}

void DeviceDestination::filled(const Piece& piece, const Room& room) {
  if (piece.device == kHostMemory) return;
  copy_to_device(piece, room.at, room.pitch);
  record({.event = nullptr, .device = piece.device, .room = room.at, .mark = 0, .keeps = {}});
}

void DeviceDestination::record(UnderWay one) {
  auto event = cuda_->record(stream_of(one.device));
  if (event.ok()) {
    one.event = std::move(*event);
  } else {
    failed(event.error());
    one.has_failed = event.error().code == ErrorCode::kDevice;
    lost_ = lost_ || !one.has_failed;
  }
  under_way_.push_back(std::move(one));
}

bool DeviceDestination::copy(const Piece& piece, const char* from) {
  if (copies_ == kCopies) return false;
  copy_to_device(piece, from, piece.source_pitch);
  copied_.insert(piece.device);
  ++unmarked_;
  ++copies_;
  return true;
}

void DeviceDestination::copy_to_device(const Piece& piece, const char* from, std::uint64_t pitch) {
  if (!failure_.ok()) return;
  const Status copied = cuda_->to_device({.host = const_cast<char*>(from),
                                          .device = piece.destination,
                                          .row = piece.row,
                                          .rows = piece.rows,
                                          .host_pitch = pitch,
                                          .device_pitch = piece.destination_pitch},
                                         stream_of(piece.device));
  if (!copied.ok()) failed(copied.error());
}

Destination::Mark DeviceDestination::mark(std::shared_ptr<const void> keeps) {
  if (copied_.empty()) return marked_;
  ++marked_;
  for (const int device : copied_) {
    UnderWay behind{.event = nullptr, .device = device, .room = nullptr, .mark = marked_, .keeps = keeps};
    behind.copies = std::exchange(unmarked_, 0);
    record(std::move(behind));
  }
  copied_.clear();
  return marked_;
}

// What has failed is not under way: the driver says so of all that comes behind it.
Status DeviceDestination::go_on() {
  while (!under_way_.empty()) {
    UnderWay& first = under_way_.front();
    if (!first.has_failed) {
      if (first.event == nullptr) break;
      const auto done = first.event->is_done();
      if (done.ok() && !*done) break;
      if (!done.ok()) failed(done.error());
      lost_ = lost_ || (!done.ok() && done.error().code != ErrorCode::kDevice);
      if (lost_) break;
    }
    if (first.room != nullptr) free_.push_back(first.room);
    copies_ -= first.copies;
    const Mark mark = first.mark;
    under_way_.pop_front();
    if (mark == 0) continue;
    const bool is_last = under_way_.empty() || under_way_.front().mark != mark;
    passed_ = is_last ? mark : mark - 1;
  }
  return failure_;
}

void DeviceDestination::failed(const Error& error) {
  if (failure_.ok()) failure_ = error;
}

void DeviceDestination::refused(const std::string& why) {
  if (std::exchange(refused_, true)) return;
  end_.say(text("monarch: ", name_, " are copied to GPUs by way of ", kRooms,
                " MiB, at the speed of memory at most: ", why));
}

std::string DeviceDestination::waits_for() const {
  if (is_idle()) return "nothing";
  return text("a stream of ", cuda_->device_name(under_way_.front().device));
}

void DeviceDestination::give_up() {
  end_.say(text("monarch: memory of a pull of ", name_, " is given up: ", waits_for(), " has not come to its copies"));
  keep_for_ever(std::make_shared<const std::deque<UnderWay>>(std::move(under_way_)));
  keep_for_ever(std::move(rooms_));
  under_way_.clear();
  free_.clear();
}

std::vector<VerbsDestination::Span> DeviceDestination::spans() const {
  auto all = parts_;
  all.push_back({rooms_->memory.get(), kRoomBytes});
  return all;
}

}  // namespace monarch::tensor
