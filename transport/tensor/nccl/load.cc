#include "transport/tensor/nccl/load.h"

#include <dlfcn.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/tensor/nccl/nccl_own.h"

namespace monarch::tensor {

namespace {

constexpr const char* kNcclFile = "libnccl.so.2";
constexpr int kOldestNccl = 21400;
constexpr int kFloat8Nccl = 22400;

// Owners: the library, and the communicators that it has begun.
using SharedFunctions = std::shared_ptr<const own_nccl::Functions>;

ErrorCode nccl_error_code(own_nccl::Code code) {
  switch (code) {
    case own_nccl::kInvalidArgument:
    case own_nccl::kInvalidUsage: return ErrorCode::kInvalid;
    case own_nccl::kUnhandledCudaError: return ErrorCode::kDevice;
    case own_nccl::kRemoteError: return ErrorCode::kGone;
    default: return ErrorCode::kInternal;  // of the system, of NCCL's own, or one that a later NCCL has
  }
}

// "ncclCommInitRankConfig: invalid usage: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"
Error nccl_error(const own_nccl::Functions& nccl, const char* function, own_nccl::Code code, own_nccl::Comm comm) {
  std::string words = text(function, ": ", printable(nccl.error_string(code)));
  const char* const last = nccl.last_error(comm);
  if (last != nullptr && *last != '\0') words += text(": ", printable(last));
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  return {nccl_error_code(code), std::move(words)};
}

// In a communicator that does not block a call says what its state is.
NcclAnswer as_answer(const own_nccl::Functions& nccl, const char* function, own_nccl::Code code, own_nccl::Comm comm) {
  if (code == own_nccl::kSuccess) return true;
  if (code == own_nccl::kInProgress) return false;
  return nccl_error(nccl, function, code, comm);
}

std::optional<int> nccl_dtype(const Dtype& dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  switch (dtype.code << 8 | dtype.bits) {
    case 0 << 8 | 8: return own_nccl::kInt8;
    case 0 << 8 | 32: return own_nccl::kInt32;
    case 0 << 8 | 64: return own_nccl::kInt64;
    case 1 << 8 | 8: return own_nccl::kUint8;
    case 1 << 8 | 32: return own_nccl::kUint32;
    case 1 << 8 | 64: return own_nccl::kUint64;
    case 2 << 8 | 16: return own_nccl::kFloat16;
    case 2 << 8 | 32: return own_nccl::kFloat32;
    case 2 << 8 | 64: return own_nccl::kFloat64;
    case 4 << 8 | 16: return own_nccl::kBfloat16;
    case 10 << 8 | 8: return own_nccl::kFloat8e4m3;
    case 12 << 8 | 8: return own_nccl::kFloat8e5m2;
    default: return std::nullopt;
  }
}

int nccl_op(NcclOp op) {
  switch (op) {
    case NcclOp::kSum: return own_nccl::kSum;
    case NcclOp::kProduct: return own_nccl::kProduct;
    case NcclOp::kMax: return own_nccl::kMax;
    case NcclOp::kMin: return own_nccl::kMin;
    case NcclOp::kAverage: return own_nccl::kAverage;
  }
  return own_nccl::kSum;
}

class Communicator final : public NcclComm {
 public:
  Communicator(SharedFunctions nccl, own_nccl::Comm comm) : nccl_(std::move(nccl)), comm_(comm) {}

  NcclAnswer enqueue(const NcclWork& work) override;
  NcclAnswer flush() override { return as_answer(*nccl_, "ncclCommFinalize", nccl_->finalize(comm_), comm_); }
  NcclAnswer done() override {
    own_nccl::Code code = own_nccl::kSuccess;
    const own_nccl::Code asked = nccl_->async_error(comm_, &code);
    return as_answer(*nccl_, "ncclCommGetAsyncError", asked == own_nccl::kSuccess ? code : asked, comm_);
  }
  Status abort() override {
    const own_nccl::Code code = nccl_->abort(comm_);
    if (code == own_nccl::kSuccess) return {};
    return Error{nccl_error_code(code), text("ncclCommAbort: ", printable(nccl_->error_string(code)))};
  }

 private:
  const SharedFunctions nccl_;
  own_nccl::Comm const comm_;
};

NcclAnswer Communicator::enqueue(const NcclWork& work) {
  void* const stream = reinterpret_cast<void*>(static_cast<std::uintptr_t>(work.stream));
  const auto count = static_cast<std::size_t>(work.count);
  const auto bytes = static_cast<std::size_t>(work.count * element_bytes(work.dtype));
  const int peer = static_cast<int>(work.peer);
  const int dtype = nccl_dtype(work.dtype).value_or(own_nccl::kUint8);
  const int op = nccl_op(work.op);
  const auto say = [&](const char* function, own_nccl::Code code) { return as_answer(*nccl_, function, code, comm_); };
  switch (work.call) {
    case NcclCall::kAllReduce:
      return say("ncclAllReduce", nccl_->all_reduce(work.from, work.to, count, dtype, op, comm_, stream));
    case NcclCall::kBroadcast:
      return say("ncclBroadcast", nccl_->broadcast(work.from, work.to, bytes, own_nccl::kUint8, peer, comm_, stream));
    case NcclCall::kAllGather:
      return say("ncclAllGather", nccl_->all_gather(work.from, work.to, bytes, own_nccl::kUint8, comm_, stream));
    case NcclCall::kReduceScatter:
      return say("ncclReduceScatter", nccl_->reduce_scatter(work.from, work.to, count, dtype, op, comm_, stream));
    case NcclCall::kSend: return say("ncclSend", nccl_->send(work.from, bytes, own_nccl::kUint8, peer, comm_, stream));
    case NcclCall::kReceive:
      return say("ncclRecv", nccl_->receive(work.to, bytes, own_nccl::kUint8, peer, comm_, stream));
  }
  return Error{ErrorCode::kInternal, "work of no kind"};
}

class Library final : public NcclLibrary {
 public:
  Library(SharedFunctions nccl, int number, std::string version)
      : nccl_(std::move(nccl)), number_(number), version_(std::move(version)) {}

  const std::string& version() const override { return version_; }
  Result<std::string> make_id() override;
  Begun begin(const NcclPlace& place) override;
  Status check_reduces(Dtype dtype) const override;

 private:
  const SharedFunctions nccl_;
  const int number_;  // 22809
  const std::string version_;
};

Result<std::string> Library::make_id() {
  static_assert(sizeof(own_nccl::Id) == kNcclIdBytes);
  own_nccl::Id id;
  const own_nccl::Code code = nccl_->make_id(&id);
  if (code != own_nccl::kSuccess) return nccl_error(*nccl_, "ncclGetUniqueId", code, nullptr);
  return std::string(id.bytes, sizeof id.bytes);
}

NcclLibrary::Begun Library::begin(const NcclPlace& place) {
  MONARCH_ASSERT(place.id.size() == kNcclIdBytes);
  own_nccl::Id id;
  std::memcpy(id.bytes, place.id.data(), sizeof id.bytes);
  own_nccl::Config config;
  own_nccl::Comm comm = nullptr;
  const own_nccl::Code code =
      nccl_->init(&comm, static_cast<int>(place.size), id, static_cast<int>(place.rank), &config);
  NcclAnswer answer = as_answer(*nccl_, "ncclCommInitRankConfig", code, comm);
  if (comm == nullptr) return {nullptr, std::move(answer)};
  return {std::make_unique<Communicator>(nccl_, comm), std::move(answer)};
}

Status Library::check_reduces(Dtype dtype) const {
  const std::optional<int> known = nccl_dtype(dtype);
  if (!known) return Error{ErrorCode::kUnsupported, text("NCCL reduces no elements of ", to_text(dtype))};
  if (*known < own_nccl::kFloat8e4m3 || number_ >= kFloat8Nccl) return {};
  return Error{ErrorCode::kUnsupported,
               text("NCCL ", version_, " reduces no elements of ", to_text(dtype), ": 2.24 does")};
}

// 22809 is 2.28.9, and before 2.9 it was 2804 for 2.8.4.
std::string nccl_version_text(int number) {
  const int scale = number >= 10'000 ? 10'000 : 1'000;
  return text(number / scale, '.', number % scale / 100, '.', number % 100);
}

void* open_nccl(const char* file) {
  if (void* const loaded = ::dlopen(kNcclFile, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return loaded;
  return ::dlopen(file == nullptr ? kNcclFile : file, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
void find_nccl(void* library, const char* name, Function& function, const char*& missing) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) missing = name;
}

}  // namespace

Result<SharedNccl> load_nccl(const char* file) {
  // dlopen(3): an empty name is that of the program itself.
  if (file != nullptr && *file == '\0') file = nullptr;
  void* const library = open_nccl(file);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return Error{ErrorCode::kUnsupported, text("NCCL cannot be loaded: ", why == nullptr ? kNcclFile : printable(why),
                                               file == nullptr ? text("; ", kNcclVariable, " names its file") : "")};
  }
  own_nccl::Functions found;
  const char* missing = nullptr;
  find_nccl(library, "ncclGetVersion", found.version, missing);
  int number = 0;
  if (missing != nullptr || found.version(&number) != own_nccl::kSuccess) {
    return Error{ErrorCode::kUnsupported, text(file == nullptr ? kNcclFile : file, " does not say which NCCL it is")};
  }
  std::string version = nccl_version_text(number);
  if (number < kOldestNccl) {
    return Error{ErrorCode::kUnsupported,
                 text("NCCL ", version, " is too old: 2.14 or later can be asked without waiting")};
  }
#define MONARCH_FIND_NCCL(of, name) find_nccl(library, #name, found.of, missing);
  MONARCH_NCCL_FUNCTIONS(MONARCH_FIND_NCCL)
#undef MONARCH_FIND_NCCL
  if (missing != nullptr) return Error{ErrorCode::kUnsupported, text("NCCL ", version, " has no ", missing)};
  return SharedNccl(
      std::make_shared<Library>(std::make_shared<own_nccl::Functions>(found), number, std::move(version)));
}

}  // namespace monarch::tensor
