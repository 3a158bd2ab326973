#pragma once

// WorkerImage: the bytes of monarch-worker, as they are copied to hosts that do not have them; or of a bundle, which is
// monarch and the monarch-worker that belongs to it, one after the other.
//
// Thread: a value that does not change once it is made.

#include <memory>
#include <string>

#include "supervisor/launch/talk/remote_conversation.h"
#include "transport/base/result.h"

namespace monarch {

struct WorkerImage {
  RemoteFile file;
  std::string bytes;
  std::string machine;  // as `uname -m` says it
};

// Of a file of this machine, which is taken to be for machines like it. Owners: a launcher, and the talks that it has
// under way.
Result<std::shared_ptr<const WorkerImage>> read_worker_image(const std::string& path);

// What a host is asked for, where the worker is that image, or one that is installed there.
RemoteOrder order_with(RemotePurpose purpose, const WorkerImage* image, std::string installed = {});

// Owners: a program that is started on a host, and its talk.
Result<std::shared_ptr<const WorkerImage>> read_bundle(const std::string& monarch, const std::string& worker);

}  // namespace monarch
