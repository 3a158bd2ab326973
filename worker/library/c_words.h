#pragma once

// What the C functions of the library share: errors as their callers get them, structs that grow, and what a session
// and a group are there.
//
// Thread: pure functions.

#include <monarch/tensors_v1.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "worker/library/group.h"
#include "worker/library/tensor_session.h"

struct monarch_tensors_session {
  std::unique_ptr<monarch::TensorSession> is;
};

struct monarch_tensors_group {
  monarch::TensorSession* session = nullptr;
  std::unique_ptr<monarch::Group> is;
  std::string name;
  std::string mesh;  // of the member that was asked for last
};

namespace monarch {

inline int code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound: return MONARCH_TENSORS_INVALID;
    case ErrorCode::kBusy: return MONARCH_TENSORS_NO_ROOM;
    case ErrorCode::kGone: return MONARCH_TENSORS_PEER_GONE;
    case ErrorCode::kTimeout: return MONARCH_TENSORS_TIMEOUT;
    case ErrorCode::kUnsupported: return MONARCH_TENSORS_UNSUPPORTED;
    case ErrorCode::kDevice: return MONARCH_TENSORS_DEVICE;
    case ErrorCode::kInternal: break;
  }
  return MONARCH_TENSORS_INTERNAL;
}

template <std::size_t N>
void put_text(char (&to)[N], const std::string& text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

inline int fail(monarch_tensors_error_v1* to, int code, const std::string& words) {
  if (to != nullptr && to->struct_size >= sizeof *to) {
    to->code = code;
    to->rank = -1;
    to->generation = 0;
    to->lane[0] = '\0';
    put_text(to->text, words);
  }
  return code;
}

inline int fail(monarch_tensors_error_v1* to, const Error& error) { return fail(to, code_of(error), error.message); }

inline int done(monarch_tensors_error_v1* to, const Status& status) {
  return status.ok() ? MONARCH_TENSORS_OK : fail(to, status.error());
}

// What its caller has filled, who may have been built with an earlier header: the other fields are 0. at_least: bytes
// that all headers have.
template <class Struct>
Struct as_far_as_filled(const Struct& given, std::size_t at_least = 0) {
  Struct all{};
  std::memcpy(&all, &given, std::clamp<std::size_t>(given.struct_size, at_least, sizeof all));
  return all;
}

// What needs more than the process has is no reason to end it.
template <class Run>
int guarded(monarch_tensors_error_v1* error, const Run& run) {
  try {
    return run();
  } catch (const std::exception& thrown) {
    return fail(error, MONARCH_TENSORS_NO_ROOM, thrown.what());
  }
}

inline Duration milliseconds_or(std::int64_t given, Duration otherwise) {
  return given < 0 ? otherwise : Duration::milliseconds(given);
}

}  // namespace monarch
