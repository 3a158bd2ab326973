#pragma once

// TensorSession: a process of a rank as it publishes tensors and pulls those of others: its connection to the post of
// its host, by which ranks are found, and the thread that serves what it publishes, once it publishes something.
//
// Thread: any, but for what it gives out, which says so itself. Lifetime: longer than that of all it gives out. It is
// the process's that opened it: a forked child has none of its threads.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/owner_thread.h"
#include "transport/tensor/publisher.h"
#include "transport/tensor/pull.h"
#include "worker/library/card_asks.h"
#include "worker/library/group.h"
#include "worker/rank/door_thread.h"
#include "worker/rank/rank_manifest.h"

namespace monarch {

class TensorSession {
 public:
  struct PublishOptions {
    tensor::OwnerOptions owner;
    Duration linger = Duration::seconds(30);
    // Indices within the gang; empty: all of it.
    std::vector<std::uint32_t> publishers;
  };

  // `variable`: its value, or nullptr. kInvalid: this process is no rank of a job with `tensors`, or not yet.
  static Result<std::unique_ptr<TensorSession>> open(const std::function<const char*(const char* name)>& variable);
  TensorSession(const TensorSession&) = delete;
  TensorSession& operator=(const TensorSession&) = delete;
  ~TensorSession();

  // Whether it has not said so yet; of each way that tensors take it says one line.
  bool is_news(const std::string& words);
  // kInvalid in a child of the process that has opened it.
  Status check_process() const;
  const RankPlace& place() const { return place_; }

  Result<std::unique_ptr<tensor::Publisher>> publish(const std::string& name, const PublishOptions& options);
  // kNotFound: there is no such mesh. Of parts in memory of GPUs kUnsupported: there is no driver; kInvalid: it does
  // not know that memory, or another GPU's.
  Result<std::unique_ptr<tensor::Pull>> pull(const std::string& mesh, const std::string& publication,
                                             std::vector<tensor::PullPart> parts);
  // Whose memory that is. kUnsupported: there is no driver; kInvalid: it does not know it, or this is a child.
  Result<int> gpu_of(const char* memory) const;
  // Of a tensor that is mapped.
  Result<std::unique_ptr<tensor::Pull>> map(const std::string& mesh, const std::string& publication,
                                            const std::string& tensor);
  // This rank is one of them. Returns when all of them have called for it.
  Result<std::unique_ptr<Group>> meet(const std::string& name, const std::vector<GroupWish>& wishes,
                                      const Group::Options& options);

 private:
  // A pull that hears of failures.
  struct Listener {
    std::uint32_t mesh = 0;  // as the post counts them
    std::uint32_t gang = 1;  // ranks
    std::string name;
    std::weak_ptr<Inbox<tensor::FinderWord>> words;
  };

  // What a pull is made of, beside what it wants.
  struct PullMaterial {
    tensor::PullPlace place;
    std::unique_ptr<tensor::RegistrarFinder> finder;
    tensor::FinderWords words;
  };
  Result<PullMaterial> material(const std::string& mesh, const std::string& publication);

  TensorSession(RankPlace place, tensor::LinkWays ways, tensor::VerbsEnd verbs, tensor::CudaEnd cuda);
  // nullptr: none of them is in memory of a GPU.
  Result<std::unique_ptr<tensor::DeviceDestination>> devices_of(const std::vector<tensor::PullPart>& parts,
                                                                const std::string& name) const;
  void came(const DoorThread::Connection& connection);
  void heard(DoorClient::Heard& heard);
  void failed(const PostFailure& failure);
  void tell_owner(const RosterFailure& failure);
  static PostCard card_message(const tensor::OwnerThread& owner);
  Result<PostWelcome> welcome();
  Status begin_to_serve(const PostWelcome& welcome, std::uint32_t gang);
  // The same, and this host's post has the card; how large a gang of this rank's mesh is.
  Result<std::uint32_t> serve(const PostWelcome& post);

  const RankPlace place_;
  const tensor::LinkWays ways_;
  const tensor::VerbsEnd verbs_;
  const tensor::CudaEnd cuda_;
  const std::int64_t process_;
  CardAsks asks_;
  std::mutex mutex_;
  std::optional<PostCard> card_;  // that each post is told
  std::vector<Listener> listeners_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, RosterFailure> failures_;  // by mesh and first rank, the newest
  std::vector<std::string> mesh_names_;                                        // once there is an owner
  std::set<std::string> said_;
  std::unique_ptr<tensor::OwnerThread> owner_;
  std::unique_ptr<DoorThread> door_;  // last: its thread uses the others
};

}  // namespace monarch
