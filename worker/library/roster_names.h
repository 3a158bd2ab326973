#pragma once

// The meshes of a job as its posts know them, by their names.
//
// Thread: pure functions.

#include <cstdint>
#include <string>

#include "transport/base/result.h"
#include "transport/messages/post.h"

namespace monarch {

// nullptr: there is none.
const RosterMesh* find_mesh(const PostWelcome& welcome, const std::string& name);
// Ranks of it.
std::uint32_t size_of(const RosterMesh& mesh);
// Why, with the nearest.
Error no_mesh(const PostWelcome& welcome, const std::string& name);

}  // namespace monarch
