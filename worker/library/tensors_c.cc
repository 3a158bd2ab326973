// The C ABI of libmonarch-rank.so (monarch/tensors_v1.h): what is a handle there is an object here, what is an error
// here is a code and a text there. No exception of the standard library leaves it.

#include <monarch/tensors_v1.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/library/c_words.h"
#include "worker/library/tensor_session.h"
#include "worker/library/tensor_words.h"

struct monarch_tensors_publisher {
  monarch::TensorSession* session = nullptr;
  std::unique_ptr<monarch::tensor::Publisher> is;
};

struct monarch_tensors_pull {
  monarch::TensorSession* session = nullptr;
  std::unique_ptr<monarch::tensor::Pull> is;
  std::string what;  // "weights of trainer"
  std::string described;
};

namespace {

using namespace monarch;
using monarch::code_of;
using monarch::fail;
using monarch::tensor::Extents;

int code_of(tensor::PullEnd how) {
  switch (how) {
    case tensor::PullEnd::kOk: return MONARCH_TENSORS_OK;
    case tensor::PullEnd::kInvalid: return MONARCH_TENSORS_INVALID;
    case tensor::PullEnd::kNotCovered: return MONARCH_TENSORS_NOT_COVERED;
    case tensor::PullEnd::kPeerGone: return MONARCH_TENSORS_PEER_GONE;
    case tensor::PullEnd::kEnded: return MONARCH_TENSORS_ENDED;
    case tensor::PullEnd::kTimeout: return MONARCH_TENSORS_TIMEOUT;
    case tensor::PullEnd::kCancelled: return MONARCH_TENSORS_CANCELLED;
    case tensor::PullEnd::kUnreachable: return MONARCH_TENSORS_UNREACHABLE;
    case tensor::PullEnd::kDevice: return MONARCH_TENSORS_DEVICE;
  }
  return MONARCH_TENSORS_INTERNAL;
}

int fail(monarch_tensors_error_v1* to, const tensor::PullFailure& failure) {
  const int code = fail(to, code_of(failure.how), failure.text);
  if (to == nullptr || to->struct_size < sizeof *to) return code;
  if (failure.rank) to->rank = *failure.rank;
  to->generation = failure.generation;
  if (failure.lane) put_text(to->lane, tensor::lane_name(*failure.lane));
  return code;
}

struct Part {
  tensor::TensorKind tensor;
  tensor::Box box;
  Extents strides;
  int device = tensor::kHostMemory;
  std::uint64_t stream = 0;
};

// DLPack's codes of devices (dlpack.h).
constexpr std::int32_t kDlCpu = 1;
constexpr std::int32_t kDlCuda = 2;
constexpr std::int32_t kDlCudaManaged = 13;

// Of a GPU that its caller does not know.
constexpr int kSomeGpu = -2;
static_assert(kSomeGpu != tensor::kHostMemory);

// As it was published first.
constexpr std::size_t kFirstPartSize = offsetof(monarch_tensors_part_v1, device_type);
constexpr std::size_t kFirstRunSize = offsetof(monarch_tensors_run_v1, stream);

Result<Part> read_part(const monarch_tensors_part_v1& given) {
  const Error invalid{ErrorCode::kInvalid, "a part without a name, or with another struct_size"};
  if (given.struct_size < kFirstPartSize || given.name == nullptr || given.reserved != 0) return invalid;
  const monarch_tensors_part_v1 part = as_far_as_filled(given);
  const std::string name = printable(part.name);
  const bool is_of_host = part.device_type == 0 || part.device_type == kDlCpu;
  if (!is_of_host && part.device_type != kDlCuda && part.device_type != kDlCudaManaged) {
    return Error{ErrorCode::kUnsupported, text("tensor ", name, " is in memory of a device of DLPack's type ",
                                               part.device_type, ", and only CUDA's are known")};
  }
  if (part.dims > MONARCH_TENSORS_DIMS) {
    return Error{ErrorCode::kInvalid, text("tensor ", name, " has ", part.dims, " dimensions, and at most ",
                                           +MONARCH_TENSORS_DIMS, " are known")};
  }
  if (part.dims > 0 && part.size == nullptr) return invalid;
  const auto read = [&](const std::uint64_t* values, std::uint64_t otherwise) {
    Extents extents(part.dims, otherwise);
    for (std::size_t dim = 0; values != nullptr && dim < part.dims; ++dim) extents[dim] = values[dim];
    return extents;
  };
  Part out;
  if (!is_of_host) out.device = part.device < 0 ? kSomeGpu : part.device;
  out.stream = part.stream;
  out.box = {read(part.at, 0), read(part.size, 0)};
  out.tensor = {part.name, {part.dtype_code, part.dtype_bits, part.dtype_lanes}, read(part.of, 0)};
  if (part.of == nullptr) out.tensor.shape = out.box.size;
  out.strides = tensor::dense_strides(out.box.size, tensor::element_bytes(out.tensor.dtype));
  for (std::size_t dim = 0; part.strides != nullptr && dim < part.dims; ++dim) {
    if (part.strides[dim] < 0) {
      return Error{ErrorCode::kInvalid, text("tensor ", name, ": dimension ", dim, " runs backwards")};
    }
    out.strides[dim] = static_cast<std::uint64_t>(part.strides[dim]);
  }
  return out;
}

// The same, with the GPU that the driver says it is of.
Result<Part> read_part(const TensorSession& session, const monarch_tensors_part_v1& given) {
  MONARCH_ASSIGN(Part part, read_part(given));
  if (part.device != kSomeGpu) return part;
  if (tensor::is_empty(part.box)) {
    part.device = tensor::kHostMemory;
    return part;
  }
  const auto device = session.gpu_of(static_cast<const char*>(given.data));
  if (!device.ok()) {
    return Error{device.error().code, text("tensor ", printable(part.tensor.name), ": ", device.error().message)};
  }
  part.device = *device;
  return part;
}

Status put(tensor::Publisher& publisher, const Part& part, const char* data) {
  if (part.device == tensor::kHostMemory) return publisher.put(part.tensor, part.box, data, part.strides);
  return publisher.put_device(part.tensor, part.box, {data, {part.device, part.stream}}, part.strides);
}

// Once for each way that it takes.
void say_lanes(const monarch_tensors_pull& pull, const tensor::Pulled& pulled) {
  std::string words = text("monarch: ", pull.what, " come");
  const char* comma = "";
  const auto add = [&](std::uint32_t ranks, const char* lane) {
    if (ranks == 0) return;
    words += text(comma, " from ", counted(ranks, "rank"), " by ", lane);
    comma = ",";
  };
  add(pulled.by_shm, "shm");
  add(pulled.by_verbs, "verbs");
  add(pulled.by_tcp, "tcp");
  if (!pulled.why_not_shm.empty()) words += text(" (", pulled.why_not_shm);
  if (!pulled.why_not_verbs.empty()) words += text("; no verbs: ", pulled.why_not_verbs);
  if (!pulled.why_not_shm.empty()) words += ")";
  if (*comma == '\0' || !pull.session->is_news(words)) return;
  say_line(words);
}

}  // namespace

extern "C" {

uint32_t monarch_tensors_abi(void) { return MONARCH_TENSORS_ABI_V1; }

int monarch_tensors_session_open(monarch_tensors_session** session, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    auto made = TensorSession::open([](const char* name) -> const char* { return ::getenv(name); });
    if (!made.ok()) return fail(error, made.error());
    *session = new monarch_tensors_session{std::move(*made)};
    return +MONARCH_TENSORS_OK;
  });
}

void monarch_tensors_session_close(monarch_tensors_session* session) {
  if (session == nullptr) return;
  // A child has none of the threads that would be joined.
  if (!session->is->check_process().ok()) (void)session->is.release();
  delete session;
}

int monarch_tensors_publisher_open(monarch_tensors_session* session, const monarch_tensors_publish_v1* options,
                                   monarch_tensors_publisher** publisher, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    if (options->struct_size < sizeof *options || options->name == nullptr) {
      return fail(error, MONARCH_TENSORS_INVALID, "a publication without a name, or with another struct_size");
    }
    TensorSession::PublishOptions made;
    made.owner.patience = milliseconds_or(options->patience_ms, made.owner.patience);
    made.linger = milliseconds_or(options->linger_ms, made.linger);
    made.publishers.assign(options->publishers, options->publishers + options->publisher_count);
    auto opened = session->is->publish(options->name, made);
    if (!opened.ok()) return fail(error, opened.error());
    *publisher = new monarch_tensors_publisher{session->is.get(), std::move(*opened)};
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_version_begin(monarch_tensors_publisher* publisher, uint64_t number,
                                  monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const Status ours = publisher->session->check_process();
    return done(error, ours.ok() ? publisher->is->begin(number) : ours);
  });
}

int monarch_tensors_version_put(monarch_tensors_publisher* publisher, const monarch_tensors_part_v1* part,
                                monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const auto read = read_part(*publisher->session, *part);
    if (!read.ok()) return fail(error, read.error());
    return done(error, put(*publisher->is, *read, static_cast<const char*>(part->data)));
  });
}

int monarch_tensors_version_put_as(monarch_tensors_publisher* publisher, const monarch_tensors_part_v1* part,
                                   uint8_t dtype_code, uint8_t dtype_bits, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const auto read = read_part(*publisher->session, *part);
    if (!read.ok()) return fail(error, read.error());
    const auto* const data = static_cast<const char*>(part->data);
    const tensor::Dtype as{dtype_code, dtype_bits, read->tensor.dtype.lanes};
    if (read->tensor.dtype == as) return done(error, put(*publisher->is, *read, data));
    if (read->device != tensor::kHostMemory) {
      return fail(error, MONARCH_TENSORS_INVALID,
                  text("tensor ", printable(read->tensor.name), ": memory of a GPU is published as it is"));
    }
    return done(error, publisher->is->put_as(read->tensor, as, read->box, data, read->strides));
  });
}

int monarch_tensors_version_lend(monarch_tensors_publisher* publisher, const monarch_tensors_part_v1* part,
                                 void** memory, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const auto read = read_part(*part);
    if (!read.ok()) return fail(error, read.error());
    const auto lent = publisher->is->lend(read->tensor, read->box);
    if (!lent.ok()) return fail(error, lent.error());
    *memory = *lent;
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_version_commit(monarch_tensors_publisher* publisher, monarch_tensors_error_v1* error) {
  return monarch_tensors_version_commit_within(publisher, -1, error);
}

int monarch_tensors_version_commit_within(monarch_tensors_publisher* publisher, int64_t timeout_ms,
                                          monarch_tensors_error_v1* error) {
  return guarded(error,
                 [&] { return done(error, publisher->is->commit(milliseconds_or(timeout_ms, Duration::forever()))); });
}

void monarch_tensors_version_abandon(monarch_tensors_publisher* publisher) {
  if (publisher->session->check_process().ok()) publisher->is->abandon();
}

int monarch_tensors_publisher_end(monarch_tensors_publisher* publisher, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const Status ours = publisher->session->check_process();
    return done(error, ours.ok() ? publisher->is->close() : ours);
  });
}

void monarch_tensors_publisher_free(monarch_tensors_publisher* publisher) {
  if (publisher == nullptr) return;
  if (!publisher->session->check_process().ok()) (void)publisher->is.release();
  delete publisher;
}

int monarch_tensors_pull_make(monarch_tensors_session* session, const char* mesh, const char* publication,
                              const monarch_tensors_part_v1* parts, size_t count, monarch_tensors_pull** pull,
                              monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    std::vector<tensor::PullPart> wanted;
    const auto* const first = reinterpret_cast<const char*>(parts);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& part = *reinterpret_cast<const monarch_tensors_part_v1*>(first + i * parts->struct_size);
      if (part.struct_size != parts->struct_size) {
        return fail(error, MONARCH_TENSORS_INVALID, "parts of one array, and each with another struct_size");
      }
      auto read = read_part(*session->is, part);
      if (!read.ok()) return fail(error, read.error());
      const Status fits = tensor::check_wanted(read->tensor, read->box, read->strides);
      if (!fits.ok()) return fail(error, fits.error());
      wanted.push_back({.tensor = std::move(read->tensor),
                        .box = read->box,
                        .data = static_cast<char*>(part.data),
                        .strides = read->strides,
                        .device = read->device});
    }
    auto made = session->is->pull(mesh, publication, std::move(wanted));
    if (!made.ok()) return fail(error, made.error());
    *pull = new monarch_tensors_pull{
        session->is.get(), std::move(*made), text(printable(publication), " of ", printable(mesh)), {}};
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_map_make(monarch_tensors_session* session, const char* mesh, const char* publication,
                             const char* tensor, monarch_tensors_pull** pull, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    auto made = session->is->map(mesh, publication, tensor);
    if (!made.ok()) return fail(error, made.error());
    *pull = new monarch_tensors_pull{
        session->is.get(), std::move(*made), text(printable(publication), " of ", printable(mesh)), {}};
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_pull_mapped(monarch_tensors_pull* pull, monarch_tensors_mapped_v1* mapped,
                                monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const tensor::TensorKind* const kind = pull->is->mapped_kind();
    if (kind == nullptr) return fail(error, MONARCH_TENSORS_INVALID, text(pull->what, ": nothing of it is mapped"));
    monarch_tensors_mapped_v1 filled{};
    filled.struct_size = mapped->struct_size;
    filled.dims = static_cast<std::uint32_t>(kind->shape.size());
    filled.data = pull->is->mapped();
    filled.bytes = tensor::elements(kind->shape).value_or(0) * tensor::element_bytes(kind->dtype);
    filled.dtype_code = kind->dtype.code;
    filled.dtype_bits = kind->dtype.bits;
    filled.dtype_lanes = kind->dtype.lanes;
    for (std::size_t dim = 0; dim < kind->shape.size(); ++dim) filled.size[dim] = kind->shape[dim];
    std::memcpy(mapped, &filled, std::min<std::size_t>(mapped->struct_size, sizeof filled));
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_pull_run(monarch_tensors_pull* pull, const monarch_tensors_run_v1* options,
                             monarch_tensors_pulled_v1* pulled, monarch_tensors_error_v1* error) {
  return guarded(error, [&] {
    const Status ours = pull->session->check_process();
    if (!ours.ok()) return fail(error, ours.error());
    const monarch_tensors_run_v1 given = as_far_as_filled(*options, kFirstRunSize);
    tensor::RunOptions run;
    if (given.timeout_ms >= 0) run.timeout = Duration::milliseconds(given.timeout_ms);
    run.stream = given.stream;
    run.next_generation = (given.flags & MONARCH_TENSORS_NEXT_GENERATION) != 0;
    if (const monarch_tensors_version_v1* const than = given.newer_than) {
      run.newer_than = tensor::PulledVersion{than->gang, {than->generation, than->number}};
    }
    run.waiting = [pull, begun = boot_now()](const std::string& words) {
      say_line(text("monarch: ", pull->what, " are waited for since ", to_text(boot_now() - begun), ": ", words));
    };
    const tensor::PullOutcome outcome = pull->is->run(run);
    if (const auto* const failure = std::get_if<tensor::PullFailure>(&outcome)) return fail(error, *failure);
    const auto& got = std::get<tensor::Pulled>(outcome);
    say_lanes(*pull, got);
    if (pulled == nullptr) return +MONARCH_TENSORS_OK;
    monarch_tensors_pulled_v1 filled{};
    filled.struct_size = pulled->struct_size;
    filled.gang = got.version.gang;
    filled.generation = got.version.version.generation;
    filled.number = got.version.version.number;
    filled.bytes = got.bytes;
    filled.seconds = static_cast<double>(got.time.count_nanoseconds()) / 1e9;
    filled.by_shm = got.by_shm;
    filled.by_tcp = got.by_tcp;
    filled.by_verbs = got.by_verbs;
    // An earlier header knows the first fields alone.
    std::memcpy(pulled, &filled, std::min<std::size_t>(pulled->struct_size, sizeof filled));
    return +MONARCH_TENSORS_OK;
  });
}

void monarch_tensors_pull_cancel(monarch_tensors_pull* pull) { pull->is->cancel(); }

const char* monarch_tensors_pull_describe(monarch_tensors_pull* pull) {
  const tensor::Index* const index = pull->is->index();
  if (index == nullptr) return nullptr;
  pull->described = describe_index(*index);
  return pull->described.c_str();
}

void monarch_tensors_pull_free(monarch_tensors_pull* pull) {
  if (pull == nullptr) return;
  if (!pull->session->check_process().ok()) (void)pull->is.release();
  delete pull;
}

}  // extern "C"
