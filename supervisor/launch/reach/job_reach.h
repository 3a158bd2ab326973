#pragma once

// JobReach: the hosts of a job as their launcher reaches them, and this machine, by a check that is forked before there
// is any thread and kept as long as this is. That one is lent out as talks, one at a time; when one ends, what was
// struck by it is taken back.
//
// Thread: the loop's; the main one of its process, which has no other when it is made.

#include <memory>
#include <optional>
#include <string>

#include "supervisor/launch/reach/check_reach.h"
#include "supervisor/launch/talk/forked_programs.h"

namespace monarch {

class HereCheck {
 public:
  HereCheck(EventLoop& loop, std::string worker, bool forks_later);
  ~HereCheck();
  HereCheck(const HereCheck&) = delete;
  HereCheck& operator=(const HereCheck&) = delete;

  std::unique_ptr<HostTalk> lend(HostTalk::OnLost on_lost);

 private:
  class Lent;
  void fork();
  void ask(const CheckRequest& request);
  void keep();
  void send(const CheckRequest& request);
  void on_answer(const CheckOutcome& outcome);
  void on_lost(const LaunchFailure& why);
  void take_back();

  EventLoop& loop_;
  std::string worker_;
  bool forks_later_;  // where the check has ended, another one may be forked
  ForkedPrograms programs_;
  Lent* lent_ = nullptr;
  bool asking_ = false;
  bool keeping_ = false;               // what is asked is that it goes on, and takes everything back
  std::optional<CheckRequest> later_;  // of who has it, once it is kept
  std::optional<LaunchFailure> over_;
  std::unique_ptr<HostTalk> talk_;
};

class JobReach final : public CheckReach {
 public:
  JobReach(const ReachSurroundings& around, std::unique_ptr<HostReach> hosts);

  std::unique_ptr<HostTalk> open(Reached where, HostTalk::OnLost on_lost) override;

 private:
  std::unique_ptr<HostReach> hosts_;
  HereCheck here_;
};

}  // namespace monarch
