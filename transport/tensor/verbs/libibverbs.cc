#include "transport/tensor/verbs/libibverbs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

// The header puts macros before these two.
#undef ibv_query_port
#undef ibv_reg_mr_iova

namespace monarch::tensor {

namespace {

constexpr const char* kFile = "libibverbs.so.1";
constexpr std::uint8_t kAckTimeout = 16;  // 4.096 us × 2^16: 268 ms
// WARNING: 7 is "for ever" to rdma_rxe (Linux 6.1, rxe_comp.c), so a peer that is gone would never be told.
constexpr std::uint8_t kRetries = 6;
constexpr std::uint8_t kNotReadyRetries = 7;
constexpr std::uint8_t kNotReadyTimer = 12;
constexpr std::uint8_t kHops = 64;
constexpr int kGids = 256;  // of a port that are looked at

// Its functions. Those that the header has inline go through the context that it has given out.
struct Functions {
  decltype(&::ibv_get_device_list) get_device_list = nullptr;
  decltype(&::ibv_free_device_list) free_device_list = nullptr;
  decltype(&::ibv_get_device_name) get_device_name = nullptr;
  decltype(&::ibv_open_device) open_device = nullptr;
  decltype(&::ibv_close_device) close_device = nullptr;
  decltype(&::ibv_query_device) query_device = nullptr;
  decltype(&::ibv_query_port) query_port = nullptr;
  decltype(&::_ibv_query_gid_table) query_gid_table = nullptr;
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&::ibv_reg_mr_iova) reg_mr_iova = nullptr;
  decltype(&::ibv_reg_mr) reg_mr = nullptr;
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&::ibv_create_qp) create_qp = nullptr;
  decltype(&::ibv_modify_qp) modify_qp = nullptr;
  decltype(&::ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&::ibv_wc_status_str) wc_status_str = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Functions& all) {
  return find(library, "ibv_get_device_list", all.get_device_list) &&
         find(library, "ibv_free_device_list", all.free_device_list) &&
         find(library, "ibv_get_device_name", all.get_device_name) &&
         find(library, "ibv_open_device", all.open_device) && find(library, "ibv_close_device", all.close_device) &&
         find(library, "ibv_query_device", all.query_device) && find(library, "ibv_query_port", all.query_port) &&
         find(library, "_ibv_query_gid_table", all.query_gid_table) && find(library, "ibv_alloc_pd", all.alloc_pd) &&
         find(library, "ibv_dealloc_pd", all.dealloc_pd) && find(library, "ibv_reg_mr_iova", all.reg_mr_iova) &&
         find(library, "ibv_reg_mr", all.reg_mr) && find(library, "ibv_dereg_mr", all.dereg_mr) &&
         find(library, "ibv_create_comp_channel", all.create_comp_channel) &&
         find(library, "ibv_destroy_comp_channel", all.destroy_comp_channel) &&
         find(library, "ibv_create_cq", all.create_cq) && find(library, "ibv_destroy_cq", all.destroy_cq) &&
         find(library, "ibv_get_cq_event", all.get_cq_event) && find(library, "ibv_ack_cq_events", all.ack_cq_events) &&
         find(library, "ibv_create_qp", all.create_qp) && find(library, "ibv_modify_qp", all.modify_qp) &&
         find(library, "ibv_destroy_qp", all.destroy_qp) && find(library, "ibv_wc_status_str", all.wc_status_str);
}

// Owners: the library, and everything that it has given out.
using SharedFunctions = std::shared_ptr<const Functions>;

Error device_error(const std::string& device, const char* what, int errno_value) {
  return errno_error(text(device, ": ", what), errno_value);
}

std::optional<std::uint32_t> node_of(const std::string& device) {
  std::ifstream file("/sys/class/infiniband/" + device + "/device/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;  // no such file: it has none, as an emulated one
  return static_cast<std::uint32_t>(node);
}

bool is_up(std::uint32_t interface) {
  ifreq request{};
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::if_indextoname(interface, request.ifr_name) == nullptr) return false;
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  return (request.ifr_flags & IFF_UP) != 0 && (request.ifr_flags & IFF_RUNNING) != 0;
}

GidEntry as_entry(const ibv_gid_entry& from) {
  GidEntry entry{.index = from.gid_index, .kind = GidKind::kInfiniBand, .gid = {}, .up = true};
  if (from.gid_type == IBV_GID_TYPE_ROCE_V1) entry.kind = GidKind::kRoceV1;
  if (from.gid_type == IBV_GID_TYPE_ROCE_V2) entry.kind = GidKind::kRoceV2;
  std::copy(std::begin(from.gid.raw), std::end(from.gid.raw), entry.gid.begin());
  if (entry.kind != GidKind::kInfiniBand) entry.up = is_up(from.ndev_ifindex);
  return entry;
}

Result<PortFacts> port_facts(const Functions& verbs, ibv_context* context, std::uint8_t number,
                             const std::string& device) {
  ibv_port_attr port{};
  const int failed = verbs.query_port(context, number, reinterpret_cast<_compat_ibv_port_attr*>(&port));
  if (failed != 0) return device_error(device, "its port cannot be queried", failed);
  PortFacts facts{.number = number,
                  .active = port.state == IBV_PORT_ACTIVE,
                  .ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET,
                  .lid = port.lid,
                  .mtu = static_cast<std::uint8_t>(port.active_mtu),
                  .gids = {}};
  std::vector<ibv_gid_entry> gids(kGids);
  const ssize_t count = verbs.query_gid_table(context, gids.data(), gids.size(), 0, sizeof(ibv_gid_entry));
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = gids[static_cast<std::size_t>(i)];
    if (entry.port_num == number) facts.gids.push_back(as_entry(entry));
  }
  return facts;
}

// "8 MiB at most: ulimit -l".
std::string lock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "no limit: ulimit -l";
  return text(amount_text(limit.rlim_cur), " at most: ulimit -l");
}

struct Opened {
  Opened(SharedFunctions functions, ibv_context* opened) : verbs(std::move(functions)), context(opened) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    if (domain != nullptr) (void)verbs->dealloc_pd(domain);
    (void)verbs->close_device(context);
  }

  const SharedFunctions verbs;
  ibv_context* const context;
  ibv_pd* domain = nullptr;
};

// Owners: the device, and what it has given out.
using SharedOpened = std::shared_ptr<Opened>;

class Memory final : public VerbsMemory {
 public:
  Memory(SharedOpened opened, ibv_mr* region) : opened_(std::move(opened)), region_(region) {}
  ~Memory() override { (void)opened_->verbs->dereg_mr(region_); }
  std::uint32_t local_key() const override { return region_->lkey; }
  std::uint32_t remote_key() const override { return region_->rkey; }

 private:
  const SharedOpened opened_;
  ibv_mr* const region_;
};

class Queue final : public VerbsQueue {
 public:
  Queue(SharedOpened opened, std::uint8_t port, std::size_t reads, std::string device)
      : opened_(std::move(opened)), port_(port), reads_(reads), device_(std::move(device)) {}
  ~Queue() override {
    const Functions& verbs = *opened_->verbs;
    if (pair_ != nullptr) (void)verbs.destroy_qp(pair_);
    if (completions_ != nullptr) (void)verbs.destroy_cq(completions_);
    if (channel_ != nullptr) (void)verbs.destroy_comp_channel(channel_);
  }

  Status make();
  std::uint32_t number() const override { return pair_->qp_num; }
  Status connect(const QueuePath& path) override;
  Status post(const VerbsRead& read) override;
  Result<std::vector<VerbsCompletion>> take(std::size_t most) override;
  Status arm() override;
  bool was_woken() override;
  int descriptor() const override { return channel_ == nullptr ? -1 : channel_->fd; }
  void set_error() override;

 private:
  Status modify(ibv_qp_attr& attributes, int mask, const char* what);

  const SharedOpened opened_;
  const std::uint8_t port_;
  const std::size_t reads_;
  const std::string device_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_qp* pair_ = nullptr;
};

// A queue that only serves needs no completions, but verbs want a place for them.
Status Queue::make() {
  const Functions& verbs = *opened_->verbs;
  if (reads_ > 0) {
    channel_ = verbs.create_comp_channel(opened_->context);
    if (channel_ == nullptr) return device_error(device_, "no channel of completions", errno);
    const int flags = ::fcntl(channel_->fd, F_GETFL);
    if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
      return device_error(device_, "fcntl of a channel of completions", errno);
    }
  }
  const std::size_t room = std::max<std::size_t>(reads_, 1);
  completions_ = verbs.create_cq(opened_->context, static_cast<int>(room), nullptr, channel_, 0);
  if (completions_ == nullptr) return device_error(device_, "no queue of completions", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = completions_;
  wanted.recv_cq = completions_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = static_cast<std::uint32_t>(room);
  wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  pair_ = verbs.create_qp(opened_->domain, &wanted);
  if (pair_ == nullptr) return device_error(device_, "no pair of queues", errno);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = 0;
  attributes.port_num = port_;
  attributes.qp_access_flags = reads_ == 0 ? IBV_ACCESS_REMOTE_READ : 0;
  return modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "to INIT");
}

Status Queue::modify(ibv_qp_attr& attributes, int mask, const char* what) {
  const int failed = opened_->verbs->modify_qp(pair_, &attributes, mask);
  if (failed == 0) return {};
  return device_error(device_, text("a queue cannot be brought ", what).c_str(), failed);
}

Status Queue::connect(const QueuePath& path) {
  ibv_qp_attr ready{};
  ready.qp_state = IBV_QPS_RTR;
  ready.path_mtu = static_cast<ibv_mtu>(path.mtu);
  ready.dest_qp_num = path.peer.queue;
  ready.rq_psn = path.peer.packet;
  ready.max_dest_rd_atomic = path.reads;
  ready.min_rnr_timer = kNotReadyTimer;
  ready.ah_attr.port_num = port_;
  ready.ah_attr.dlid = path.peer.lid;
  if (path.peer.by_gid) {
    ready.ah_attr.is_global = 1;
    MONARCH_ASSERT(path.peer.gid.data.size() == sizeof ready.ah_attr.grh.dgid.raw);
    std::memcpy(ready.ah_attr.grh.dgid.raw, path.peer.gid.data.data(), sizeof ready.ah_attr.grh.dgid.raw);
    ready.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(path.gid_index);
    ready.ah_attr.grh.hop_limit = kHops;
  }
  MONARCH_TRY(modify(ready,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                     "to RTR"));
  if (reads_ == 0) return {};
  ibv_qp_attr sends{};
  sends.qp_state = IBV_QPS_RTS;
  sends.timeout = kAckTimeout;
  sends.retry_cnt = kRetries;
  sends.rnr_retry = kNotReadyRetries;
  sends.sq_psn = path.own.packet;
  sends.max_rd_atomic = path.reads;
  return modify(
      sends,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
      "to RTS");
}

Status Queue::post(const VerbsRead& read) {
  ibv_sge into{};
  into.addr = reinterpret_cast<std::uintptr_t>(read.into);
  into.length = read.bytes;
  into.lkey = read.local_key;
  ibv_send_wr request{};
  request.wr_id = read.id;
  request.sg_list = &into;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = read.told ? IBV_SEND_SIGNALED : 0;
  request.wr.rdma.remote_addr = read.from;
  request.wr.rdma.rkey = read.remote_key;
  ibv_send_wr* refused = nullptr;
  const int failed = ::ibv_post_send(pair_, &request, &refused);
  if (failed != 0) return device_error(device_, "a READ cannot be posted", failed);
  return {};
}

Result<std::vector<VerbsCompletion>> Queue::take(std::size_t most) {
  constexpr std::size_t kAtOnce = 32;
  std::array<ibv_wc, kAtOnce> done{};
  const int count = ::ibv_poll_cq(completions_, static_cast<int>(std::min(most, done.size())), done.data());
  if (count < 0) return Error{ErrorCode::kInternal, text(device_, ": its completions cannot be read")};
  std::vector<VerbsCompletion> out;
  for (int i = 0; i < count; ++i) {
    const ibv_wc& one = done[static_cast<std::size_t>(i)];
    out.push_back({one.wr_id, one.status == IBV_WC_SUCCESS ? "" : opened_->verbs->wc_status_str(one.status)});
  }
  return out;
}

Status Queue::arm() {
  const int failed = ::ibv_req_notify_cq(completions_, 0);
  if (failed != 0) return device_error(device_, "its completions cannot be waited for", failed);
  return {};
}

bool Queue::was_woken() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (channel_ == nullptr || opened_->verbs->get_cq_event(channel_, &queue, &context) != 0) return false;
  opened_->verbs->ack_cq_events(queue, 1);
  return true;
}

void Queue::set_error() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  // Where it cannot be it is so already; its end is that of all it has under way.
  (void)opened_->verbs->modify_qp(pair_, &attributes, IBV_QP_STATE);
}

class Device final : public VerbsDevice {
 public:
  Device(SharedOpened opened, DeviceFacts facts, std::uint8_t port)
      : opened_(std::move(opened)), facts_(std::move(facts)), port_(port) {}

  const DeviceFacts& facts() const override { return facts_; }
  Result<PortFacts> port() const override { return port_facts(*opened_->verbs, opened_->context, port_, facts_.name); }
  Result<std::unique_ptr<VerbsMemory>> know(char* start, std::uint64_t bytes, VerbsAccess access) override;
  Result<std::unique_ptr<VerbsQueue>> make_queue(std::size_t reads) override {
    auto made = std::make_unique<Queue>(opened_, port_, reads, facts_.name);
    MONARCH_TRY(made->make());
    return std::unique_ptr<VerbsQueue>(std::move(made));
  }

 private:
  const SharedOpened opened_;
  const DeviceFacts facts_;
  const std::uint8_t port_;
};

// Others name offsets, never addresses: their memory begins at 0.
Result<std::unique_ptr<VerbsMemory>> Device::know(char* start, std::uint64_t bytes, VerbsAccess access) {
  const Functions& verbs = *opened_->verbs;
  ibv_mr* const region =
      access == VerbsAccess::kReadByOthers
          ? verbs.reg_mr_iova(opened_->domain, start, static_cast<std::size_t>(bytes), 0, IBV_ACCESS_REMOTE_READ)
          : verbs.reg_mr(opened_->domain, start, static_cast<std::size_t>(bytes), IBV_ACCESS_LOCAL_WRITE);
  if (region != nullptr) return std::unique_ptr<VerbsMemory>(std::make_unique<Memory>(opened_, region));
  const int why = errno;
  if (why == ENOMEM || why == EPERM || why == EAGAIN) {
    return Error{ErrorCode::kBusy,
                 text(amount_text(bytes), " of memory cannot be locked for ", facts_.name, " (", lock_limit(), ")"),
                 why};
  }
  return errno_error(ErrorCode::kBusy, text(facts_.name, " refuses to know ", amount_text(bytes), " of memory"), why);
}

class Library final : public VerbsLibrary {
 public:
  explicit Library(SharedFunctions verbs) : verbs_(std::move(verbs)) {}

  Result<std::vector<DeviceFacts>> devices() override;
  Result<std::unique_ptr<VerbsDevice>> open(const DeviceFacts& device, std::uint8_t port) override;

 private:
  // Of those there are; none: no error, for a machine may have no such device.
  template <class Use>
  void with_each(const Use& use) {
    int count = 0;
    ibv_device** const all = verbs_->get_device_list(&count);
    if (all == nullptr) return;
    for (int i = 0; i < count; ++i) use(all[i]);
    verbs_->free_device_list(all);
  }

  const SharedFunctions verbs_;
};

// One that cannot be opened is none.
Result<std::vector<DeviceFacts>> Library::devices() {
  std::vector<DeviceFacts> out;
  with_each([&](ibv_device* device) {
    ibv_context* const context = verbs_->open_device(device);
    if (context == nullptr) return;
    const Opened opened(verbs_, context);
    ibv_device_attr attributes{};
    if (verbs_->query_device(context, &attributes) != 0) return;
    DeviceFacts facts;
    facts.name = verbs_->get_device_name(device);
    facts.node = node_of(facts.name);
    facts.reads_out = static_cast<std::uint8_t>(std::clamp(attributes.max_qp_init_rd_atom, 1, int{kMostReads}));
    facts.reads_in = static_cast<std::uint8_t>(std::clamp(attributes.max_qp_rd_atom, 1, int{kMostReads}));
    for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
      auto found = port_facts(*verbs_, context, static_cast<std::uint8_t>(port), facts.name);
      if (found.ok()) facts.ports.push_back(std::move(*found));
    }
    out.push_back(std::move(facts));
  });
  return out;
}

Result<std::unique_ptr<VerbsDevice>> Library::open(const DeviceFacts& device, std::uint8_t port) {
  SharedOpened opened;
  int why = ENODEV;
  with_each([&](ibv_device* one) {
    if (opened || device.name != verbs_->get_device_name(one)) return;
    ibv_context* const context = verbs_->open_device(one);
    if (context == nullptr) {
      why = errno;
      return;
    }
    opened = std::make_shared<Opened>(verbs_, context);
  });
  if (!opened) return device_error(device.name, "it cannot be opened", why);
  opened->domain = verbs_->alloc_pd(opened->context);
  if (opened->domain == nullptr) return device_error(device.name, "no protection domain", errno);
  return std::unique_ptr<VerbsDevice>(std::make_unique<Device>(std::move(opened), device, port));
}

}  // namespace

Result<std::unique_ptr<VerbsLibrary>> load_libibverbs() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{ErrorCode::kUnsupported, text("no ", kFile, " on this machine")};
  auto functions = std::make_shared<Functions>();
  if (!find_all(library, *functions)) {
    return Error{ErrorCode::kUnsupported, text(kFile, " is too old: rdma-core 31 or later has what is needed")};
  }
  return std::unique_ptr<VerbsLibrary>(std::make_unique<Library>(std::move(functions)));
}

}  // namespace monarch::tensor
