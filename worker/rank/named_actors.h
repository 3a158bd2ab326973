#pragma once

// NamedActors: actors that are made while the job runs, one of each name, in the process of the controller. Whoever
// asks first has it made, of a class of the controller's plugin; whoever asks later gets the same. The question is a
// call of actor "monarch", endpoint "make": (name, class, args).
//
// Thread: find() any; actors are made on a thread of their own. Lifetime: within that of the host and the plugin.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <monarch/plugin_v1.h>

#include "transport/base/result.h"
#include "transport/messages/post.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/rank_host.h"
#include "worker/rank/rank_process.h"

namespace monarch {

class NamedActors {
 public:
  static Result<std::unique_ptr<NamedActors>> open(const RankProcess& process, const Plugin& plugin,
                                                   const RankHost& host);
  NamedActors(const NamedActors&) = delete;
  NamedActors& operator=(const NamedActors&) = delete;
  ~NamedActors();

  // The maker, or one that was made; nullptr: neither.
  ActorThread* find(const std::string& name);
  // What the post is told: it lets all calls of this process pass.
  static PostHello hello(const RankPlace& place);
  // Waits for what runs, and destroys them. False: not within `patience`; they go on.
  bool stop(Duration patience);

 private:
  NamedActors(const RankProcess& process, const Plugin& plugin, const RankHost& host)
      : process_(process), plugin_(plugin), host_(host) {}
  // Why there is none; of a constructor its words.
  Status make(const std::string& name, const std::string& class_name, std::string args);
  static void on_make(void* self, monarch_bytes_v1 arguments, const monarch_host_v1* host,
                      monarch_delivery_v1* delivery);

  const RankProcess& process_;
  const Plugin& plugin_;
  const RankHost& host_;
  std::mutex mutex_;
  struct Named {
    std::string class_name;
    std::unique_ptr<ActorThread> actor;
  };
  std::map<std::string, Named> made_;
  std::unique_ptr<ActorThread> maker_;
};

}  // namespace monarch
