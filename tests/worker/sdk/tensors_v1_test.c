/* C reads the ABI, and its structs are as they were: a program that was built before must find each field where it was. */

#include <monarch/tensors_v1.h>

_Static_assert(sizeof(monarch_tensors_error_v1) == 1056, "error");
_Static_assert(offsetof(monarch_tensors_error_v1, text) == 32, "error.text");
_Static_assert(sizeof(monarch_tensors_part_v1) == 80, "part");
_Static_assert(offsetof(monarch_tensors_part_v1, at) == 56, "part.at");
_Static_assert(offsetof(monarch_tensors_part_v1, device_type) == 64, "part.device_type");
_Static_assert(offsetof(monarch_tensors_part_v1, stream) == 72, "part.stream");
_Static_assert(sizeof(monarch_tensors_version_v1) == 24, "version");
_Static_assert(sizeof(monarch_tensors_publish_v1) == 40, "publish");
_Static_assert(offsetof(monarch_tensors_publish_v1, linger_ms) == 32, "publish.linger_ms");
_Static_assert(sizeof(monarch_tensors_run_v1) == 32, "run");
_Static_assert(offsetof(monarch_tensors_run_v1, stream) == 24, "run.stream");
_Static_assert(sizeof(monarch_tensors_pulled_v1) == 56, "pulled");
_Static_assert(offsetof(monarch_tensors_pulled_v1, by_verbs) == 48, "pulled.by_verbs");
_Static_assert(sizeof(monarch_tensors_mapped_v1) == 96, "mapped");
_Static_assert(offsetof(monarch_tensors_mapped_v1, size) == 32, "mapped.size");
_Static_assert(sizeof(monarch_tensors_members_v1) == 24, "members");
_Static_assert(sizeof(monarch_tensors_meet_v1) == 56, "meet");
_Static_assert(offsetof(monarch_tensors_meet_v1, offer_bytes) == 48, "meet.offer_bytes");
_Static_assert(sizeof(monarch_tensors_group_v1) == 56, "group");
_Static_assert(offsetof(monarch_tensors_group_v1, offer_bytes) == 48, "group.offer_bytes");
_Static_assert(sizeof(monarch_tensors_member_v1) == 24, "member");
_Static_assert(offsetof(monarch_tensors_member_v1, mesh) == 16, "member.mesh");
_Static_assert(sizeof(monarch_tensors_nccl_work_v1) == 64, "nccl_work");
_Static_assert(offsetof(monarch_tensors_nccl_work_v1, op) == 36, "nccl_work.op");
_Static_assert(offsetof(monarch_tensors_nccl_work_v1, timeout_ms) == 56, "nccl_work.timeout_ms");

int main(void) { return MONARCH_TENSORS_ABI_V1 == 1 ? 0 : 1; }
