#pragma once

// NCCL between ranks of any meshes, for C++ programs and actors (monarch-tensors(7)): a group that ends when one of its
// members does, where collectives of NCCL's alone hang for ever. Header only, as monarch/tensor.hpp is: libnccl.so.2
// and the driver are loaded when a group is made, and nothing is linked.
//
//   monarch::TensorSession session;
//   monarch::NcclGroup group(session, "sync", {{"trainer", {0}}, {"generator"}}, {.device = 0});
//   group.broadcast(weights, weights, count, 0, {.stream = stream});
//   group.wait(stream, std::chrono::seconds(60));
//   group.close();
//
// What fails throws TensorError. Once a member is lost every call throws MONARCH_TENSORS_PEER_GONE, which names it;
// then all make a new group by the same name, with the ranks that were started again.
//
// Memory is that of the GPU, counts are in elements. It has to stay until a wait() for its stream has returned, or the
// group has been destroyed.
//
// Thread: any; calls for work are served one after the other. Lifetime: within that of the session.

#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <monarch/tensors_v1.h>
#include <monarch/tensor.hpp>

namespace monarch {

// Ranks of a mesh, in the order in which they are members; none: all of it.
struct GroupRanks {
  std::string mesh;
  std::vector<std::uint32_t> ranks = {};
};

enum class NcclReduce : std::uint32_t {
  kSum = MONARCH_TENSORS_NCCL_SUM,
  kProduct = MONARCH_TENSORS_NCCL_PRODUCT,
  kMax = MONARCH_TENSORS_NCCL_MAX,
  kMin = MONARCH_TENSORS_NCCL_MIN,
  kAverage = MONARCH_TENSORS_NCCL_AVERAGE,
};

namespace tensors_detail {

struct NcclApi {
#define MONARCH_TENSORS_FUNCTION(name) decltype(&::monarch_tensors_##name) name = nullptr;
#define MONARCH_TENSORS_FUNCTIONS(each)                                                                           \
  each(group_meet) each(group_info) each(group_free) each(nccl_id) each(nccl_open) each(nccl_run) each(nccl_wait) \
      each(nccl_close) each(nccl_free)
  MONARCH_TENSORS_FUNCTIONS(MONARCH_TENSORS_FUNCTION)
#undef MONARCH_TENSORS_FUNCTION

  static std::shared_ptr<const NcclApi> load() {
    void* const library = open_library();
    auto api = std::make_shared<NcclApi>();
#define MONARCH_TENSORS_FUNCTION(name) find_function(library, #name, api->name);
    MONARCH_TENSORS_FUNCTIONS(MONARCH_TENSORS_FUNCTION)
#undef MONARCH_TENSORS_FUNCTION
#undef MONARCH_TENSORS_FUNCTIONS
    return api;
  }
};

}  // namespace tensors_detail

class NcclGroup {
 public:
  struct Options {
    int device = 0;  // the GPU, as this process counts them
    // That the members meet, and that NCCL joins them; below 0: none.
    std::chrono::milliseconds timeout = std::chrono::milliseconds(-1);
  };
  struct Call {
    std::uint64_t stream = 0;  // CUstream; 0: the default one of the GPU
    NcclReduce op = NcclReduce::kSum;
    std::optional<TensorDtype> dtype = {};  // of the elements; nothing: that of the C++ type
    std::chrono::milliseconds timeout = std::chrono::milliseconds(-1);  // until it is enqueued; below 0: none
  };

  // All members call it, with the same name and list; this rank is one of them, with a GPU of its own. The place in the
  // list is the rank in the group.
  NcclGroup(TensorSession& session, const std::string& name, const std::vector<GroupRanks>& members,
            const Options& options)
      : api_(tensors_detail::NcclApi::load()) {
    meet(session, name, members, options);
    try {
      tensors_detail::check([&](monarch_tensors_error_v1* error) {
        return api_->nccl_open(group_, options.device, options.timeout.count(), &nccl_, error);
      });
    } catch (...) {
      api_->group_free(group_);  // the others are told
      throw;
    }
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  // Where it was not closed all others have lost this member.
  ~NcclGroup() {
    api_->nccl_free(nccl_);
    api_->group_free(group_);
  }

  std::uint32_t rank() const { return info_.rank; }
  std::uint32_t size() const { return info_.size; }

  // Each is enqueued on the stream when it returns. `to` may be `from`.
  template <class T>
  void all_reduce(const T* from, T* to, std::uint64_t count, const Call& call) {
    run(MONARCH_TENSORS_NCCL_ALL_REDUCE, from, to, count, dtype<T>(call), 0, call);
  }
  // From member `root`, where `to` may be `from`; others give nothing, and their `from` is not looked at.
  template <class T>
  void broadcast(const T* from, T* to, std::uint64_t count, std::uint32_t root, const Call& call) {
    run(MONARCH_TENSORS_NCCL_BROADCAST, from, to, count, dtype<T>(call), root, call);
  }
  // `count` of each: `to` has room for size() times as many.
  template <class T>
  void all_gather(const T* from, T* to, std::uint64_t count, const Call& call) {
    run(MONARCH_TENSORS_NCCL_ALL_GATHER, from, to, count, dtype<T>(call), 0, call);
  }
  // `count` for each: `from` has size() times as many.
  template <class T>
  void reduce_scatter(const T* from, T* to, std::uint64_t count, const Call& call) {
    run(MONARCH_TENSORS_NCCL_REDUCE_SCATTER, from, to, count, dtype<T>(call), 0, call);
  }
  // Of two that each send to the other, one receives first.
  template <class T>
  void send(const T* from, std::uint64_t count, std::uint32_t to, const Call& call) {
    run(MONARCH_TENSORS_NCCL_SEND, from, nullptr, count, dtype<T>(call), to, call);
  }
  template <class T>
  void recv(T* to, std::uint64_t count, std::uint32_t from, const Call& call) {
    run(MONARCH_TENSORS_NCCL_RECV, nullptr, to, count, dtype<T>(call), from, call);
  }

  // Until what is enqueued on the stream has ended. MONARCH_TENSORS_TIMEOUT: it may be waited for again.
  void wait(std::uint64_t stream, std::chrono::milliseconds timeout) {
    tensors_detail::check(
        [&](monarch_tensors_error_v1* error) { return api_->nccl_wait(nccl_, stream, timeout.count(), error); });
  }
  // The end in order, by all members: it returns once each has all that it is to get, and has called it.
  void close(std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    tensors_detail::check(
        [&](monarch_tensors_error_v1* error) { return api_->nccl_close(nccl_, timeout.count(), error); });
  }

 private:
  void meet(const TensorSession& session, const std::string& name, const std::vector<GroupRanks>& members,
            const Options& options) {
    std::vector<monarch_tensors_members_v1> all;
    for (const GroupRanks& one : members) {
      all.push_back({sizeof all[0], static_cast<std::uint32_t>(one.ranks.size()), one.mesh.c_str(), one.ranks.data()});
    }
    unsigned char id[MONARCH_TENSORS_NCCL_ID];
    monarch_tensors_meet_v1 meet{};
    meet.struct_size = sizeof meet;
    meet.members_count = static_cast<std::uint32_t>(all.size());
    meet.name = name.c_str();
    meet.members = all.data();
    meet.timeout_ms = options.timeout.count();
    meet.notice_ms = -1;
    if (is_first(members)) {
      tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->nccl_id(id, error); });
      meet.offer = id;
      meet.offer_bytes = sizeof id;
    }
    tensors_detail::check(
        [&](monarch_tensors_error_v1* error) { return api_->group_meet(session.handle(), &meet, &group_, error); });
    info_.struct_size = sizeof info_;
    api_->group_info(group_, &info_);
  }

  // By what its worker has told it: the group is held by the first of the list.
  static bool is_first(const std::vector<GroupRanks>& members) {
    const char* const mesh = std::getenv("MONARCH_MESH");
    const char* const rank = std::getenv("MONARCH_RANK");
    if (members.empty() || mesh == nullptr || rank == nullptr || members[0].mesh != mesh) return false;
    return std::to_string(members[0].ranks.empty() ? 0 : members[0].ranks[0]) == rank;
  }

  template <class T>
  static TensorDtype dtype(const Call& call) {
    if (call.dtype) return *call.dtype;
    if constexpr (std::is_arithmetic_v<T>) return dtype_of<T>();
    throw TensorError(MONARCH_TENSORS_INVALID, "say which dtype it is");
  }

  void run(std::uint32_t which, const void* from, void* to, std::uint64_t count, TensorDtype dtype, std::uint32_t peer,
           const Call& call) {
    monarch_tensors_nccl_work_v1 work{};
    work.struct_size = sizeof work;
    work.call = which;
    work.from = from;
    work.to = to;
    work.count = count;
    work.dtype_code = dtype.code;
    work.dtype_bits = dtype.bits;
    work.dtype_lanes = dtype.lanes;
    work.op = static_cast<std::uint32_t>(call.op);
    work.peer = peer;
    work.stream = call.stream;
    work.timeout_ms = call.timeout.count();
    tensors_detail::check([&](monarch_tensors_error_v1* error) { return api_->nccl_run(nccl_, &work, error); });
  }

  std::shared_ptr<const tensors_detail::NcclApi> api_;
  monarch_tensors_group* group_ = nullptr;
  monarch_tensors_nccl* nccl_ = nullptr;
  monarch_tensors_group_v1 info_{};
};

}  // namespace monarch
