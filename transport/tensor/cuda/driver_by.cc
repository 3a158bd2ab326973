#include "transport/tensor/cuda/driver_by.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/text.h"
#include "transport/tensor/cuda/copy_calls.h"

namespace monarch::tensor {

namespace {

using own_cuda::Code;
using own_cuda::Functions;

// WARNING: one cuMemHostRegister of hundreds of GiB fails on some hosts, and on others it does not come back.
constexpr std::uint64_t kPinPiece = std::uint64_t{1} << 30;

std::string address_text(const char* at) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), reinterpret_cast<std::uintptr_t>(at), 16);
  return text("0x", std::string_view(digits.data(), static_cast<std::size_t>(end.ptr - digits.data())));
}

// What was found of one GPU. Its primary context is what PyTorch and the runtime of CUDA have, and is kept from then
// on.
struct Gpu {
  own_cuda::Device device = 0;
  own_cuda::Context context = nullptr;
  std::uint64_t max_pitch = 0;
};

// Most calls want a context of the thread's own: theirs for as long as this is there.
// WARNING: the context that a pointer names is none for memory of pools (cuPointerGetAttribute, CONTEXT).
class PushedContext {
 public:
  PushedContext(const Functions& cuda, own_cuda::Context context) : cuda_(cuda), code_(cuda.push(context)) {}
  PushedContext(const PushedContext&) = delete;
  PushedContext& operator=(const PushedContext&) = delete;
  ~PushedContext() {
    own_cuda::Context popped = nullptr;
    if (code_ == own_cuda::kSuccess) (void)cuda_.pop(&popped);  // it was pushed here
  }
  Code code() const { return code_; }

 private:
  const Functions& cuda_;
  Code code_;
};

// The same, for calls of our own.
// WARNING: while any thread captures a graph, calls such as cuEventQuery and cuMemHostRegister_v2 fail in all threads
// whose mode is not relaxed, and what is captured fails with them.
class CurrentContext {
 public:
  CurrentContext(const Functions& cuda, own_cuda::Context context) : cuda_(cuda), pushed_(cuda, context) {
    if (code() == own_cuda::kSuccess) exchanged_ = cuda_.exchange_capture_mode(&mode_) == own_cuda::kSuccess;
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    if (exchanged_) (void)cuda_.exchange_capture_mode(&mode_);  // it was exchanged here
  }
  Code code() const { return pushed_.code(); }

 private:
  const Functions& cuda_;
  const PushedContext pushed_;
  int mode_ = own_cuda::kCaptureRelaxed;
  bool exchanged_ = false;
};

// After it a context does nothing any more; other codes are of one call.
bool ends_context(Code code) {
  switch (code) {
    case own_cuda::kNotInitialized:
    case own_cuda::kDeinitialized:
    case own_cuda::kInvalidContext:
    case own_cuda::kEccUncorrectable:
    case own_cuda::kNvlinkUncorrectable:
    case own_cuda::kIllegalAddress:
    case own_cuda::kLaunchTimeout:
    case own_cuda::kContextIsDestroyed:
    case own_cuda::kAssert:
    case own_cuda::kHardwareStackError:
    case own_cuda::kIllegalInstruction:
    case own_cuda::kMisalignedAddress:
    case own_cuda::kInvalidAddressSpace:
    case own_cuda::kInvalidPc:
    case own_cuda::kLaunchFailed: return true;
    default: return false;
  }
}

enum class CudaWay : std::uint8_t { kToHost, kToDevice };

class Driver final : public Cuda {
 public:
  explicit Driver(const Functions& cuda) : cuda_(cuda) {}
  ~Driver() override {
    for (const auto& one : gpus_) (void)cuda_.primary_release(one.second.device);  // it ends with its last user
  }

  std::string device_name(int device) override;
  Result<int> device_of(const char* at) override;
  Status check(const CudaStream& stream) override;
  Result<std::unique_ptr<CudaPin>> pin(char* start, std::uint64_t bytes) override;
  Status to_host(const CudaCopy& copy, const CudaStream& stream) override {
    return enqueue(copy, stream, CudaWay::kToHost);
  }
  Status to_device(const CudaCopy& copy, const CudaStream& stream) override {
    return enqueue(copy, stream, CudaWay::kToDevice);
  }
  Result<std::unique_ptr<CudaEvent>> record(const CudaStream& stream) override;
  Result<std::unique_ptr<CudaScope>> enter(int device) override;

  Result<bool> is_done(own_cuda::Event event, int device);
  void destroy(own_cuda::Event event, int device);
  Status pin_piece(char* start, std::uint64_t bytes);
  void unpin_piece(char* start);

 private:
  Error failed(int device, std::string_view what, Code code);
  // kBusy, where what was enqueued may go on.
  Error unknown(int device, std::string_view what, Code code);
  Result<Gpu> gpu(int device);
  // One that is in use already, else the first: what is asked there is true of all.
  Result<Gpu> any_gpu();
  bool uses_none();
  Result<Gpu> begin_to_use(int device);
  Status enqueue(const CudaCopy& copy, const CudaStream& stream, CudaWay way);
  Code call(const CudaCopy& one, own_cuda::Stream stream, CudaWay way);
  std::vector<std::uintptr_t> ends_within(const CudaCopy& copy);

  const Functions cuda_;
  // Ranks pull and publish from threads of theirs, and each may be the first to see a GPU, or to register memory.
  std::mutex mutex_;
  std::map<int, Gpu> gpus_;
  std::map<std::uintptr_t, std::uintptr_t> pinned_;  // pieces: from, to
};

own_cuda::Stream handle_of(const CudaStream& stream) { return reinterpret_cast<own_cuda::Stream>(stream.handle); }
own_cuda::Address address_of(const char* at) { return reinterpret_cast<own_cuda::Address>(at); }

class DriverEvent final : public CudaEvent {
 public:
  DriverEvent(Driver& driver, own_cuda::Event event, int device) : driver_(driver), event_(event), device_(device) {}
  ~DriverEvent() override { driver_.destroy(event_, device_); }
  Result<bool> is_done() override { return driver_.is_done(event_, device_); }

 private:
  Driver& driver_;
  own_cuda::Event event_;
  int device_;
};

class DriverScope final : public CudaScope {
 public:
  DriverScope(const Functions& cuda, own_cuda::Context context) : current_(cuda, context) {}
  Code code() const { return current_.code(); }

 private:
  const PushedContext current_;  // whose calls are captured as the thread's are
};

class DriverPin final : public CudaPin {
 public:
  explicit DriverPin(Driver& driver) : driver_(driver) {}
  ~DriverPin() override {
    for (char* const piece : pieces_) driver_.unpin_piece(piece);
  }
  Status add(char* start, std::uint64_t bytes) {
    MONARCH_TRY(driver_.pin_piece(start, bytes));
    pieces_.push_back(start);
    return {};
  }

 private:
  Driver& driver_;
  std::vector<char*> pieces_;
};

Error Driver::failed(int device, std::string_view what, Code code) {
  return {ErrorCode::kDevice, text(device_name(device), ": ", what, ": ", cuda_word(cuda_, code))};
}

Error Driver::unknown(int device, std::string_view what, Code code) {
  Error error = failed(device, what, code);
  if (!ends_context(code)) error.code = ErrorCode::kBusy;
  return error;
}

std::string Driver::device_name(int device) {
  std::array<char, 256> name{};
  own_cuda::Device found = 0;
  if (cuda_.device_get(&found, device) != own_cuda::kSuccess ||
      cuda_.device_name(name.data(), int{name.size()} - 1, found) != own_cuda::kSuccess || name[0] == '\0') {
    return text("GPU ", device);
  }
  return text("GPU ", device, " (", name.data(), ')');
}

Result<Gpu> Driver::gpu(int device) {
  const std::lock_guard lock(mutex_);
  if (const auto found = gpus_.find(device); found != gpus_.end()) return found->second;
  MONARCH_ASSIGN(const Gpu begun, begin_to_use(device));
  return gpus_.emplace(device, begun).first->second;
}

bool Driver::uses_none() {
  const std::lock_guard lock(mutex_);
  return gpus_.empty();
}

Result<Gpu> Driver::any_gpu() {
  {
    const std::lock_guard lock(mutex_);
    if (!gpus_.empty()) return gpus_.begin()->second;
  }
  return gpu(0);
}

Result<Gpu> Driver::begin_to_use(int device) {
  Gpu gpu;
  if (const Code code = cuda_.device_get(&gpu.device, device); code != own_cuda::kSuccess) {
    return failed(device, "looking for it", code);
  }
  int pitch = 0;
  if (const Code code = cuda_.device_attribute(&pitch, own_cuda::kMaxPitch, gpu.device); code != own_cuda::kSuccess) {
    return failed(device, "asking for its greatest pitch", code);
  }
  gpu.max_pitch = static_cast<std::uint64_t>(std::max(pitch, 0));
  if (const Code code = cuda_.primary_retain(&gpu.context, gpu.device); code != own_cuda::kSuccess) {
    return failed(device, "taking its primary context", code);
  }
  return gpu;
}

Result<int> Driver::device_of(const char* at) {
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -1;
  std::array<int, 3> asked{own_cuda::kPointerMemoryType, own_cuda::kPointerIsManaged, own_cuda::kPointerOrdinal};
  std::array<void*, 3> answers{&type, &managed, &ordinal};
  const auto ask = [&] {
    return cuda_.pointer_attributes(unsigned{asked.size()}, asked.data(), answers.data(), address_of(at));
  };
  // Who has memory of a GPU has a context there, mostly: one of GPU 0 would take half a GiB of its memory.
  Code code = uses_none() ? ask() : own_cuda::kInvalidContext;
  if (code == own_cuda::kInvalidContext) {
    MONARCH_ASSIGN(const Gpu any, any_gpu());
    const CurrentContext current(cuda_, any.context);
    code = current.code() == own_cuda::kSuccess ? ask() : current.code();
  }
  const std::string memory = text("memory at ", address_text(at));
  if (code == own_cuda::kInvalidValue) return Error{ErrorCode::kInvalid, text(memory, ": ", cuda_word(cuda_, code))};
  if (code != own_cuda::kSuccess) return Error{ErrorCode::kDevice, text(memory, ": ", cuda_word(cuda_, code))};
  if (type == own_cuda::kMemoryOfDevice || managed != 0) {
    ordinal = std::max(ordinal, 0);
    MONARCH_TRY(gpu(ordinal));  // what follows finds a context
    return ordinal;
  }
  const char* const why =
      type == own_cuda::kMemoryOfHost ? " is the host's" : " is of no GPU: its driver knows none there";
  return Error{ErrorCode::kInvalid, text(memory, why)};
}

Status Driver::check(const CudaStream& stream) {
  {
    MONARCH_ASSIGN(const Gpu gpu, this->gpu(stream.device));
    const CurrentContext current(cuda_, gpu.context);
    int status = 0;
    Code code = current.code();
    if (code == own_cuda::kSuccess) code = cuda_.stream_is_capturing(handle_of(stream), &status);
    // The second: it is the default stream, and another one is captured.
    if (status != 0 || code == own_cuda::kCaptureImplicit) {
      return Error{ErrorCode::kInvalid, text(device_name(stream.device), ": the stream is captured into a graph")};
    }
    if (code != own_cuda::kSuccess) return failed(stream.device, "looking at a stream", code);
  }
  const auto recorded = record(stream);
  return recorded.ok() ? Status() : Status(Error{ErrorCode::kDevice, recorded.error().message});
}

Status Driver::pin_piece(char* start, std::uint64_t bytes) {
  MONARCH_ASSIGN(const Gpu any, any_gpu());
  const CurrentContext current(cuda_, any.context);
  Code code = current.code();
  if (code == own_cuda::kSuccess) code = cuda_.host_register(start, bytes, own_cuda::kRegisterPortable);
  if (code == own_cuda::kSuccess) {
    const std::lock_guard lock(mutex_);
    const auto from = reinterpret_cast<std::uintptr_t>(start);
    pinned_.insert_or_assign(from, from + bytes);
    return {};
  }
  const bool later = code == own_cuda::kOutOfMemory || code == own_cuda::kAlreadyRegistered;
  return Error{later ? ErrorCode::kBusy : ErrorCode::kUnsupported, cuda_word(cuda_, code)};
}

void Driver::unpin_piece(char* start) {
  {
    const std::lock_guard lock(mutex_);
    pinned_.erase(reinterpret_cast<std::uintptr_t>(start));
  }
  const auto any = any_gpu();
  if (!any.ok()) return;  // it was there when this was registered
  const CurrentContext current(cuda_, any->context);
  (void)cuda_.host_unregister(start);  // a driver that has failed lets go of memory when the process ends
}

Result<std::unique_ptr<CudaPin>> Driver::pin(char* start, std::uint64_t bytes) {
  auto pin = std::make_unique<DriverPin>(*this);
  for (std::uint64_t at = 0; at < bytes; at += kPinPiece) {
    const Status piece = pin->add(start + at, std::min(kPinPiece, bytes - at));
    if (piece.ok()) continue;
    return Error{piece.error().code, text("registering ", bytes, " bytes with the driver: ", piece.error().message)};
  }
  return std::unique_ptr<CudaPin>(std::move(pin));
}

std::vector<std::uintptr_t> Driver::ends_within(const CudaCopy& copy) {
  const auto from = reinterpret_cast<std::uintptr_t>(copy.host);
  const std::uintptr_t to = from + (copy.rows - 1) * copy.host_pitch + copy.row;
  std::vector<std::uintptr_t> ends;
  const std::lock_guard lock(mutex_);
  auto piece = pinned_.upper_bound(from);
  if (piece != pinned_.begin()) --piece;
  for (; piece != pinned_.end() && piece->first < to; ++piece) {
    for (const std::uintptr_t end : {piece->first, piece->second}) {
      if (end > from && end < to && (ends.empty() || ends.back() != end)) ends.push_back(end);
    }
  }
  return ends;
}

Code Driver::call(const CudaCopy& one, own_cuda::Stream stream, CudaWay way) {
  const own_cuda::Address device = address_of(one.device);
  if (one.rows == 1) {
    return way == CudaWay::kToHost ? cuda_.to_host(one.host, device, one.row, stream)
                                   : cuda_.to_device(device, one.host, one.row, stream);
  }
  own_cuda::Copy2D rows{.width = one.row, .height = one.rows};
  if (way == CudaWay::kToHost) {
    rows.source_type = own_cuda::kMemoryOfDevice;
    rows.source_device = device;
    rows.source_pitch = one.device_pitch;
    rows.target_type = own_cuda::kMemoryOfHost;
    rows.target_host = one.host;
    rows.target_pitch = one.host_pitch;
  } else {
    rows.source_type = own_cuda::kMemoryOfHost;
    rows.source_host = one.host;
    rows.source_pitch = one.host_pitch;
    rows.target_type = own_cuda::kMemoryOfDevice;
    rows.target_device = device;
    rows.target_pitch = one.device_pitch;
  }
  return cuda_.copy_2d(&rows, stream);
}

Status Driver::enqueue(const CudaCopy& copy, const CudaStream& stream, CudaWay way) {
  if (copy.row == 0 || copy.rows == 0) return {};
  MONARCH_ASSIGN(const Gpu gpu, this->gpu(stream.device));
  const CurrentContext current(cuda_, gpu.context);
  Code code = current.code();
  CopyCalls calls(copy, ends_within(copy), gpu.max_pitch);
  for (CudaCopy one; code == own_cuda::kSuccess && calls.next(one);) code = call(one, handle_of(stream), way);
  if (code == own_cuda::kSuccess) return {};
  const char* const where = way == CudaWay::kToHost ? " bytes to the host" : " bytes from the host";
  return failed(stream.device, text("copying ", copy.row * copy.rows, where), code);
}

Result<std::unique_ptr<CudaEvent>> Driver::record(const CudaStream& stream) {
  MONARCH_ASSIGN(const Gpu gpu, this->gpu(stream.device));
  const CurrentContext current(cuda_, gpu.context);
  own_cuda::Event event = nullptr;
  Code code = current.code();
  if (code == own_cuda::kSuccess) code = cuda_.event_create(&event, own_cuda::kEventDisableTiming);
  if (code != own_cuda::kSuccess) return unknown(stream.device, "making an event", code);
  auto made = std::make_unique<DriverEvent>(*this, event, stream.device);
  code = cuda_.event_record(event, handle_of(stream));
  if (code == own_cuda::kSuccess) return std::unique_ptr<CudaEvent>(std::move(made));
  // An event and its stream are of one context.
  const char* const hint = code == own_cuda::kInvalidHandle ? ": is the stream another GPU's?" : "";
  Error error = unknown(stream.device, "recording an event in a stream", code);
  error.message += hint;
  return error;
}

Result<std::unique_ptr<CudaScope>> Driver::enter(int device) {
  MONARCH_ASSIGN(const Gpu gpu, this->gpu(device));
  auto scope = std::make_unique<DriverScope>(cuda_, gpu.context);
  if (scope->code() != own_cuda::kSuccess) return failed(device, "making its context current", scope->code());
  return std::unique_ptr<CudaScope>(std::move(scope));
}

Result<bool> Driver::is_done(own_cuda::Event event, int device) {
  MONARCH_ASSIGN(const Gpu gpu, this->gpu(device));
  const CurrentContext current(cuda_, gpu.context);
  const Code code = current.code() == own_cuda::kSuccess ? cuda_.event_query(event) : current.code();
  if (code == own_cuda::kSuccess) return true;
  if (code == own_cuda::kNotReady) return false;
  return unknown(device, "what a stream was told to do", code);
}

void Driver::destroy(own_cuda::Event event, int device) {
  const auto gpu = this->gpu(device);
  if (!gpu.ok()) return;  // it was there when the event was made
  const CurrentContext current(cuda_, gpu->context);
  (void)cuda_.event_destroy(event);  // a driver that has failed lets go of it when the process ends
}

}  // namespace

std::string cuda_word(const Functions& cuda, Code code) {
  const char* name = nullptr;
  const char* words = nullptr;
  if (cuda.error_name(code, &name) != own_cuda::kSuccess || name == nullptr) return text("error ", code);
  if (cuda.error_string(code, &words) != own_cuda::kSuccess || words == nullptr) return name;
  return text(name, " (", words, ')');
}

SharedCuda driver_by(const Functions& functions) { return std::make_shared<Driver>(functions); }

}  // namespace monarch::tensor
