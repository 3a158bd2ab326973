// Groups in the C ABI of libmonarch-rank.so (monarch/tensors_v1.h).

#include <monarch/tensors_v1.h>

#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/library/c_words.h"
#include "worker/library/group.h"
#include "worker/library/tensor_words.h"

namespace {

constexpr monarch::Duration kGroupNotice = monarch::Duration::seconds(30);

monarch::Result<std::vector<monarch::GroupWish>> read_wishes(const monarch_tensors_meet_v1& options) {
  std::vector<monarch::GroupWish> wishes;
  const auto* const first = reinterpret_cast<const char*>(options.members);
  for (std::size_t i = 0; i < options.members_count; ++i) {
    const auto& given = *reinterpret_cast<const monarch_tensors_members_v1*>(first + i * options.members->struct_size);
    const bool is_one = given.struct_size >= sizeof given && given.struct_size == options.members->struct_size &&
                        given.mesh != nullptr && (given.count == 0 || given.ranks != nullptr);
    if (!is_one)
      return monarch::Error{monarch::ErrorCode::kInvalid, "members without a mesh, or with another struct_size"};
    wishes.push_back({.mesh = given.mesh, .ranks = {}, .all = given.count == 0});
    if (given.count > 0) wishes.back().ranks.assign(given.ranks, given.ranks + given.count);
  }
  return wishes;
}

// Of a group that is lost, in which nothing more comes.
int fail_as_lost(monarch_tensors_error_v1* to, const monarch_tensors_group& group, const std::string& why) {
  const int code = monarch::fail(to, MONARCH_TENSORS_PEER_GONE, why);
  if (to != nullptr && to->struct_size >= sizeof *to) to->generation = group.is->meeting().epoch.generation;
  return code;
}

}  // namespace

extern "C" {

int monarch_tensors_group_meet(monarch_tensors_session* session, const monarch_tensors_meet_v1* options,
                               monarch_tensors_group** group, monarch_tensors_error_v1* error) {
  return monarch::guarded(error, [&] {
    if (options->struct_size < sizeof *options || options->name == nullptr ||
        (options->offer == nullptr && options->offer_bytes > 0) || options->offer_bytes > MONARCH_TENSORS_OFFER) {
      return monarch::fail(error, MONARCH_TENSORS_INVALID,
                           "a group without a name, with too large an offer, or with another struct_size");
    }
    const auto wishes = read_wishes(*options);
    if (!wishes.ok()) return monarch::fail(error, wishes.error());
    monarch::Group::Options made;
    if (options->timeout_ms >= 0) made.timeout = monarch::Duration::milliseconds(options->timeout_ms);
    made.waiting_every = monarch::milliseconds_or(options->notice_ms, kGroupNotice);
    if (options->offer_bytes > 0) made.offer.assign(static_cast<const char*>(options->offer), options->offer_bytes);
    const std::string name = monarch::printable(options->name);
    made.waiting = monarch::Group::say_who_is_missing(name);
    auto met = session->is->meet(options->name, *wishes, made);
    if (!met.ok()) return monarch::fail(error, met.error());
    *group = new monarch_tensors_group{session->is.get(), std::move(*met), name, {}};
    return +MONARCH_TENSORS_OK;
  });
}

void monarch_tensors_group_info(monarch_tensors_group* group, monarch_tensors_group_v1* info) {
  const monarch::tensor::GroupMeeting& meeting = group->is->meeting();
  monarch_tensors_group_v1 filled{};
  filled.struct_size = info->struct_size;
  filled.rank = group->is->rank();
  filled.size = group->is->members().size();
  filled.port = meeting.offer.port;
  filled.generation = meeting.epoch.generation;
  filled.epoch = meeting.epoch.count;
  filled.address = meeting.offer.address.c_str();
  filled.offer = meeting.offer.bytes.data();
  filled.offer_bytes = meeting.offer.bytes.size();
  std::memcpy(info, &filled, std::min<std::size_t>(info->struct_size, sizeof filled));
}

int monarch_tensors_group_member(monarch_tensors_group* group, uint32_t index, monarch_tensors_member_v1* member,
                                 monarch_tensors_error_v1* error) {
  return monarch::guarded(error, [&] {
    if (index >= group->is->members().size()) {
      return monarch::fail(error, MONARCH_TENSORS_INVALID,
                           monarch::text("the group has ", group->is->members().size(), " members, and no ", index));
    }
    const monarch::tensor::GroupMember found = group->is->members().at(index);
    group->mesh = found.mesh;
    monarch_tensors_member_v1 filled{};
    filled.struct_size = member->struct_size;
    filled.rank = found.rank;
    filled.generation = group->is->meeting().generations.at(index);
    filled.mesh = group->mesh.c_str();
    std::memcpy(member, &filled, std::min<std::size_t>(member->struct_size, sizeof filled));
    return +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_group_check(monarch_tensors_group* group, monarch_tensors_error_v1* error) {
  return monarch::guarded(error, [&] {
    const monarch::Status ours = group->session->check_process();
    if (!ours.ok()) return monarch::fail(error, ours.error());
    const auto lost = group->is->lost();
    return lost ? fail_as_lost(error, *group, *lost) : +MONARCH_TENSORS_OK;
  });
}

int monarch_tensors_group_wait_lost(monarch_tensors_group* group, int64_t timeout_ms, monarch_tensors_error_v1* error) {
  return monarch::guarded(error, [&] {
    const monarch::Status ours = group->session->check_process();
    if (!ours.ok()) return monarch::fail(error, ours.error());
    const auto lost = group->is->wait_lost(
        timeout_ms < 0 ? monarch::Instant::never() : monarch::boot_now() + monarch::Duration::milliseconds(timeout_ms));
    if (lost.ok()) return fail_as_lost(error, *group, *lost);
    const bool left = lost.error().code == monarch::ErrorCode::kGone;
    return monarch::fail(error, left ? MONARCH_TENSORS_CANCELLED : MONARCH_TENSORS_TIMEOUT, lost.error().message);
  });
}

void monarch_tensors_group_leave(monarch_tensors_group* group) {
  if (group->session->check_process().ok()) group->is->leave();
}

void monarch_tensors_group_free(monarch_tensors_group* group) {
  if (group == nullptr) return;
  // A child has none of the threads that it would be left by.
  if (!group->session->check_process().ok()) (void)group->is.release();
  delete group;
}

}  // extern "C"
