#include "transport/tensor/nccl/library.h"

namespace monarch::tensor {

const char* nccl_call_name(NcclCall call) {
  switch (call) {
    case NcclCall::kAllReduce: return "all_reduce";
    case NcclCall::kBroadcast: return "broadcast";
    case NcclCall::kAllGather: return "all_gather";
    case NcclCall::kReduceScatter: return "reduce_scatter";
    case NcclCall::kSend: return "send";
    case NcclCall::kReceive: return "recv";
  }
  return "";
}

}  // namespace monarch::tensor
