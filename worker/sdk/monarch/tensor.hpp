#pragma once

// Tensors between ranks, for C++ programs and actors (monarch-tensors(7)): a rank publishes its boxes of named tensors,
// version after version, and ranks of other meshes pull them, each in its own layout. Header only, over the C functions
// of monarch/tensors_v1.h, which are loaded from the file that MONARCH_RANK_LIBRARY names: nothing is linked.
//
//   monarch::TensorSession session;
//   auto weights = session.publisher("weights");
//   weights.version(step, [&](monarch::TensorVersion& version) {
//     version.put("w", monarch::view(data, {1024, 4096}), {.of = {8192, 4096}, .at = {r * 1024, 0}});
//   });
//
//   auto source = session.source("trainer", "weights");
//   auto pull = source.into({{"w", monarch::view(mine, {8192, n}), {{8192, 4096}, {0, k}}}});
//   const monarch::Pulled got = pull.run({.timeout = std::chrono::seconds(60)});
//
// Memory of a GPU is given as device_view(data, gpu, stream, …), and is copied on that stream.
//
// What fails throws TensorError. Shapes are in elements, strides in bytes.
//
// Thread: a session any; a publisher, and a pull but for cancel(), one at a time. Lifetime: a session outlives what it
// gives out.

#include <dlfcn.h>

#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <monarch/tensors_v1.h>

namespace monarch {

// Why a tensor was not published or pulled.
class TensorError : public std::runtime_error {
 public:
  explicit TensorError(const monarch_tensors_error_v1& error)
      : std::runtime_error(error.text),
        code(error.code),
        rank(error.rank < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(error.rank))),
        generation(error.generation),
        lane(error.lane) {}
  TensorError(int why, const std::string& words) : std::runtime_error(words), code(why) {}

  int code;                           // MONARCH_TENSORS_PEER_GONE …
  std::optional<std::uint32_t> rank;  // of the other mesh, that it is about
  std::uint64_t generation = 0;       // of its gang; 0: none was found
  std::string lane;                   // "shm", "tcp" or empty
};

struct TensorDtype {
  std::uint8_t code = 0;  // DLPack's
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;
};

// Of a C++ type. Of one's own: TensorDtype{4, 16} is bfloat16, {10, 8} float8_e4m3fn, {17, 4, 2} a pair of float4.
template <class T>
constexpr TensorDtype dtype_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return {6, 8};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {2, sizeof(T) * 8};
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return {5, sizeof(T) * 8};
  } else {
    static_assert(std::is_integral_v<T>, "say which dtype it is");
    return {std::is_signed_v<T> ? std::uint8_t{0} : std::uint8_t{1}, sizeof(T) * 8};
  }
}

// Memory of a box.
struct TensorView {
  void* data = nullptr;
  TensorDtype dtype;
  std::vector<std::uint64_t> size;
  std::vector<std::int64_t> strides;  // empty: dense, row-major
  std::int32_t device_type = 0;       // DLPack's: 0 and 1 the host's memory, 2 CUDA's
  std::int32_t device = 0;            // the GPU, as this process counts them
  const void* stream = nullptr;       // CUstream or cudaStream_t; nullptr: its default one
};

template <class T>
TensorView view(T* data, std::vector<std::uint64_t> size, std::vector<std::int64_t> strides = {}) {
  return {const_cast<std::remove_const_t<T>*>(data), dtype_of<std::remove_const_t<T>>(), std::move(size),
          std::move(strides)};
}

// In memory of a GPU of CUDA's, as this process counts them; -1: the driver says which. A put is copied on that stream,
// behind what is enqueued there and before what comes after; the memory stays until the version is whole. A pull is
// filled on the stream of its run.
template <class T>
TensorView device_view(T* data, int gpu, const void* stream, std::vector<std::uint64_t> size,
                       std::vector<std::int64_t> strides = {}) {
  TensorView made = view(data, std::move(size), std::move(strides));
  made.device_type = 2;
  made.device = gpu;
  made.stream = stream;
  return made;
}

// Where a box is in its tensor; nothing: it is all of it.
struct TensorPlace {
  std::vector<std::uint64_t> of;  // shape of the tensor
  std::vector<std::uint64_t> at;
};

struct TensorPart {
  std::string name;
  TensorView view;
  TensorPlace place = {};
};

struct Pulled {
  std::uint64_t version = 0;
  std::uint64_t generation = 0;
  std::uint32_t gang = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::uint32_t by_shm = 0;  // ranks that it came from
  std::uint32_t by_tcp = 0;
  std::uint32_t by_verbs = 0;
};

namespace tensors_detail {

// It is never unloaded.
inline void* open_library() {
  const char* const path = std::getenv("MONARCH_RANK_LIBRARY");
  void* const library = ::dlopen(path == nullptr ? "libmonarch-rank.so" : path, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* const why = ::dlerror();
  throw TensorError(MONARCH_TENSORS_UNSUPPORTED, std::string("the library of tensors cannot be loaded: ") +
                                                     (why == nullptr ? "" : why) +
                                                     "; the spec of a job needs `tensors: {}`");
}

template <class Function>
void find_function(void* library, const char* name, Function& function) {
  const std::string symbol = std::string("monarch_tensors_") + name;
  function = reinterpret_cast<Function>(::dlsym(library, symbol.c_str()));
  if (function == nullptr) throw TensorError(MONARCH_TENSORS_UNSUPPORTED, "the library of tensors has no " + symbol);
}

// The functions of the library.
struct Api {
#define MONARCH_TENSORS_FUNCTION(name) decltype(&::monarch_tensors_##name) name = nullptr;
#define MONARCH_TENSORS_FUNCTIONS(each)                                                                          \
  each(abi) each(session_open) each(session_close) each(publisher_open) each(version_begin) each(version_put)    \
      each(version_put_as) each(version_lend) each(version_commit) each(version_abandon) each(publisher_end)     \
          each(publisher_free) each(pull_make) each(map_make) each(pull_mapped) each(pull_run) each(pull_cancel) \
              each(pull_describe) each(pull_free)
  MONARCH_TENSORS_FUNCTIONS(MONARCH_TENSORS_FUNCTION)
#undef MONARCH_TENSORS_FUNCTION
  // nullptr: the library is an earlier one, which waits for no stream.
  decltype(&::monarch_tensors_version_commit_within) version_commit_within = nullptr;

  static std::shared_ptr<const Api> load() {
    void* const library = open_library();
    auto api = std::make_shared<Api>();
#define MONARCH_TENSORS_FUNCTION(name) find_function(library, #name, api->name);
    MONARCH_TENSORS_FUNCTIONS(MONARCH_TENSORS_FUNCTION)
#undef MONARCH_TENSORS_FUNCTION
#undef MONARCH_TENSORS_FUNCTIONS
    api->version_commit_within = reinterpret_cast<decltype(api->version_commit_within)>(
        ::dlsym(library, "monarch_tensors_version_commit_within"));
    if (api->abi() != MONARCH_TENSORS_ABI_V1) {
      throw TensorError(MONARCH_TENSORS_UNSUPPORTED, "the library of tensors speaks another version");
    }
    return api;
  }
};

template <class Call>
void check(const Call& call) {
  monarch_tensors_error_v1 error{};
  error.struct_size = sizeof error;
  if (call(&error) != MONARCH_TENSORS_OK) throw TensorError(error);
}

// `place` and `view` have to stay while it is used.
inline monarch_tensors_part_v1 part_of(const char* name, const TensorView& view, const TensorPlace& place) {
  const std::size_t dims = view.size.size();
  const bool fits = (view.strides.empty() || view.strides.size() == dims) &&
                    (place.of.empty() || place.of.size() == dims) && (place.at.empty() || place.at.size() == dims);
  if (!fits) {
    throw TensorError(MONARCH_TENSORS_INVALID,
                      std::string("tensor ") + name + ": size, strides, of and at have other numbers of dimensions");
  }
  monarch_tensors_part_v1 part{};
  part.struct_size = sizeof part;
  part.dims = static_cast<std::uint32_t>(dims);
  part.name = name;
  part.data = view.data;
  part.dtype_code = view.dtype.code;
  part.dtype_bits = view.dtype.bits;
  part.dtype_lanes = view.dtype.lanes;
  part.device_type = view.device_type;
  part.device = view.device;
  part.stream = reinterpret_cast<std::uintptr_t>(view.stream);
  part.size = view.size.data();
  part.strides = view.strides.empty() ? nullptr : view.strides.data();
  part.of = place.of.empty() ? nullptr : place.of.data();
  part.at = place.at.empty() ? nullptr : place.at.data();
  return part;
}

using ApiPtr = std::shared_ptr<const Api>;

}  // namespace tensors_detail

// A version while it is written.
class TensorVersion {
 public:
  TensorVersion(const tensors_detail::Api& api, monarch_tensors_publisher* of) : api_(api), of_(of) {}

  // Copies; memory of a GPU is copied when its stream comes to it.
  void put(const std::string& name, const TensorView& view, const TensorPlace& place = {}) {
    const auto part = tensors_detail::part_of(name.c_str(), view, place);
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_.version_put(of_, &part, error); });
  }
  // Memory of that box, dense and row-major, to be written until the version is whole.
  template <class T>
  T* lend(const std::string& name, const std::vector<std::uint64_t>& size, const TensorPlace& place = {}) {
    const TensorView none = view<T>(nullptr, size);
    const auto part = tensors_detail::part_of(name.c_str(), none, place);
    void* memory = nullptr;
    tensors_detail::check(
        [&](monarch_tensors_error_v1* error) { return api_.version_lend(of_, &part, &memory, error); });
    return static_cast<T*>(memory);
  }

 private:
  const tensors_detail::Api& api_;
  monarch_tensors_publisher* const of_;
};

// What a rank publishes under one name. Its end is at once; end() offers the last version to its readers first.
class TensorPublisher {
 public:
  TensorPublisher(tensors_detail::ApiPtr api, monarch_tensors_publisher* is) : api_(std::move(api)), is_(is) {}
  TensorPublisher(TensorPublisher&& other) noexcept
      : api_(std::move(other.api_)), is_(std::exchange(other.is_, nullptr)) {}
  TensorPublisher& operator=(TensorPublisher&&) = delete;
  ~TensorPublisher() {
    if (is_ != nullptr) api_->publisher_free(is_);
  }

  // write(version) puts all boxes; where it throws, nothing is published. Copies from GPUs are waited for, where
  // `timeout` is not below 0 no longer than that: then nothing is published either, and their memory stays until the
  // publisher ends.
  template <class Write>
  void version(std::uint64_t number, const Write& write,
               std::chrono::milliseconds timeout = std::chrono::milliseconds(-1)) {
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->version_begin(is_, number, error); });
    TensorVersion version(*api_, is_);
    try {
      write(version);
    } catch (...) {
      api_->version_abandon(is_);
      throw;
    }
    tensors_detail::check([&](monarch_tensors_error_v1* error) {
      if (api_->version_commit_within == nullptr) return api_->version_commit(is_, error);
      return api_->version_commit_within(is_, timeout.count(), error);
    });
  }
  void end() {
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->publisher_end(is_, error); });
  }

 private:
  tensors_detail::ApiPtr api_;  // owners: all that is made by it
  monarch_tensors_publisher* is_;
};

class TensorPull {
 public:
  struct Run {
    std::optional<Pulled> newer_than = {};
    std::chrono::milliseconds timeout = std::chrono::milliseconds(-1);  // below 0: none
    bool next_generation = false;                                       // a gang that ends is no error
    const void* stream = nullptr;  // on which memory of GPUs is filled; nullptr: the default one of each
  };

  TensorPull(tensors_detail::ApiPtr api, monarch_tensors_pull* is) : api_(std::move(api)), is_(is) {}
  TensorPull(TensorPull&& other) noexcept : api_(std::move(other.api_)), is_(std::exchange(other.is_, nullptr)) {}
  TensorPull& operator=(TensorPull&&) = delete;
  ~TensorPull() {
    if (is_ != nullptr) api_->pull_free(is_);
  }

  // One whole version.
  Pulled run(const Run& options) {
    monarch_tensors_version_v1 than{};
    monarch_tensors_run_v1 run{};
    run.struct_size = sizeof run;
    run.flags = options.next_generation ? MONARCH_TENSORS_NEXT_GENERATION : 0;
    run.timeout_ms = options.timeout.count();
    run.stream = reinterpret_cast<std::uintptr_t>(options.stream);
    if (options.newer_than) {
      than = {sizeof than, options.newer_than->gang, options.newer_than->generation, options.newer_than->version};
      run.newer_than = &than;
    }
    monarch_tensors_pulled_v1 got{};
    got.struct_size = sizeof got;
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->pull_run(is_, &run, &got, error); });
    return {got.number, got.generation, got.gang, got.bytes, got.seconds, got.by_shm, got.by_tcp, got.by_verbs};
  }
  // From any thread.
  void cancel() { api_->pull_cancel(is_); }

 private:
  tensors_detail::ApiPtr api_;
  monarch_tensors_pull* is_;
};

// A tensor as a rank of this machine has it in its memory, not copied, and read-only.
class TensorMapping {
 public:
  TensorMapping(tensors_detail::ApiPtr api, monarch_tensors_pull* is) : api_(api), pull_(std::move(api), is), is_(is) {}

  // One whole version, which then stays as it is until the next run, or the end of this.
  Pulled run(const TensorPull::Run& options) {
    const Pulled got = pull_.run(options);
    mapped_.struct_size = sizeof mapped_;
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->pull_mapped(is_, &mapped_, error); });
    return got;
  }
  // Dense, row-major. The dtype is what it was published with.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(mapped_.data);
  }
  std::uint64_t bytes() const { return mapped_.bytes; }
  std::vector<std::uint64_t> size() const { return {mapped_.size, mapped_.size + mapped_.dims}; }
  // From any thread.
  void cancel() { pull_.cancel(); }

 private:
  tensors_detail::ApiPtr api_;
  TensorPull pull_;
  monarch_tensors_pull* is_;
  monarch_tensors_mapped_v1 mapped_{};
};

// A publication of a mesh.
class TensorSource {
 public:
  TensorSource(tensors_detail::ApiPtr api, monarch_tensors_session* session, std::string mesh, std::string name)
      : api_(std::move(api)), session_(session), mesh_(std::move(mesh)), name_(std::move(name)) {}

  // These boxes, into that memory, which has to stay.
  TensorPull into(const std::vector<TensorPart>& parts) const {
    std::vector<monarch_tensors_part_v1> wanted;
    wanted.reserve(parts.size());
    for (const TensorPart& part : parts) {
      wanted.push_back(tensors_detail::part_of(part.name.c_str(), part.view, part.place));
    }
    monarch_tensors_pull* pull = nullptr;
    tensors_detail::check([&](monarch_tensors_error_v1* error) {
      return api_->pull_make(session_, mesh_.c_str(), name_.c_str(), wanted.data(), wanted.size(), &pull, error);
    });
    return {api_, pull};
  }
  // All of that tensor, where one rank of this machine has it.
  TensorMapping map(const std::string& tensor) const {
    monarch_tensors_pull* pull = nullptr;
    tensors_detail::check([&](monarch_tensors_error_v1* error) {
      return api_->map_make(session_, mesh_.c_str(), name_.c_str(), tensor.c_str(), &pull, error);
    });
    return {api_, pull};
  }

 private:
  tensors_detail::ApiPtr api_;
  monarch_tensors_session* session_;
  std::string mesh_;
  std::string name_;
};

class TensorSession {
 public:
  struct Publish {
    std::vector<std::uint32_t> publishers = {};  // indices within the gang; empty: all of it
    std::chrono::milliseconds patience = std::chrono::seconds(2);
    std::chrono::milliseconds linger = std::chrono::seconds(30);
  };

  TensorSession() : api_(tensors_detail::Api::load()) {
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->session_open(&is_, error); });
  }
  TensorSession(const TensorSession&) = delete;
  TensorSession& operator=(const TensorSession&) = delete;
  ~TensorSession() { api_->session_close(is_); }

  TensorPublisher publisher(const std::string& name) { return publisher(name, Publish()); }
  TensorPublisher publisher(const std::string& name, const Publish& options) {
    monarch_tensors_publish_v1 publish{};
    publish.struct_size = sizeof publish;
    publish.name = name.c_str();
    publish.publishers = options.publishers.data();
    publish.publisher_count = static_cast<std::uint32_t>(options.publishers.size());
    publish.patience_ms = options.patience.count();
    publish.linger_ms = options.linger.count();
    monarch_tensors_publisher* made = nullptr;
    tensors_detail::check(
        [&](monarch_tensors_error_v1* error) { return api_->publisher_open(is_, &publish, &made, error); });
    return {api_, made};
  }
  TensorSource source(std::string mesh, std::string name) const {
    return {api_, is_, std::move(mesh), std::move(name)};
  }
  // For the C functions, and what is made of them (monarch/nccl_group.hpp).
  monarch_tensors_session* handle() const { return is_; }

 private:
  tensors_detail::ApiPtr api_;
  monarch_tensors_session* is_ = nullptr;
};

}  // namespace monarch
