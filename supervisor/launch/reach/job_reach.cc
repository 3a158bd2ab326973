#include "supervisor/launch/reach/job_reach.h"

#include <utility>
#include <variant>

#include "supervisor/launch/reach/carried_talk.h"
#include "supervisor/launch/reach/program_check.h"
#include "transport/base/assert.h"

namespace monarch {

namespace {

constexpr Duration kKept = Duration::seconds(7 * 24 * 3'600);  // it ends with its input before

}  // namespace

class HereCheck::Lent final : public HostTalk {
 public:
  Lent(HereCheck& here, OnLost on_lost) : here_(here), on_lost_(std::move(on_lost)) {}
  ~Lent() override { here_.take_back(); }

  void ask(const CheckRequest& request, OnAnswer on_answer) override {
    MONARCH_ASSERT(!on_answer_);
    on_answer_ = std::move(on_answer);
    here_.ask(request);
  }
  // Each may end it.
  void tell(const CheckOutcome& outcome) {
    const OnAnswer told = std::exchange(on_answer_, nullptr);
    if (told) told(outcome);
  }
  void lose(const LaunchFailure& why) {
    if (on_answer_) return tell(why);
    const OnLost told = std::exchange(on_lost_, nullptr);
    if (told) told(why);
  }

 private:
  HereCheck& here_;
  OnLost on_lost_;
  OnAnswer on_answer_;
};

HereCheck::HereCheck(EventLoop& loop, std::string worker, bool forks_later)
    : loop_(loop), worker_(std::move(worker)), forks_later_(forks_later), programs_(loop) {
  fork();
}

HereCheck::~HereCheck() { MONARCH_ASSERT_BECAUSE(lent_ == nullptr, "its talk ends before it"); }

std::unique_ptr<HostTalk> HereCheck::lend(HostTalk::OnLost on_lost) {
  if (lent_ != nullptr) {
    const auto busy = [](const CarrierHandlers&) -> Result<std::unique_ptr<CheckCarrier>> {
      return Error{ErrorCode::kBusy, "another fault of the machine where the supervisor lives is not over yet"};
    };
    return std::make_unique<CarriedTalk>(loop_, busy, std::move(on_lost));
  }
  if (over_ && forks_later_) fork();
  auto lent = std::make_unique<Lent>(*this, std::move(on_lost));
  lent_ = lent.get();
  return lent;
}

void HereCheck::fork() {
  over_.reset();
  asking_ = keeping_ = false;
  talk_ = check_here(loop_, programs_, worker_, [this](const LaunchFailure& why) { on_lost(why); });
  keep();
}

void HereCheck::keep() {
  keeping_ = true;
  send({.life = kKept, .undo = true});
}

void HereCheck::ask(const CheckRequest& request) {
  if (asking_) {
    later_ = request;
    return;
  }
  send(request);  // where its check has ended, that is answered
}

void HereCheck::send(const CheckRequest& request) {
  asking_ = true;
  talk_->ask(request, [this](const CheckOutcome& outcome) { on_answer(outcome); });
}

void HereCheck::on_answer(const CheckOutcome& outcome) {
  asking_ = false;
  const bool kept = std::exchange(keeping_, false);
  if (const auto* failure = std::get_if<LaunchFailure>(&outcome)) over_ = *failure;
  if (lent_ == nullptr) {
    if (!kept && !over_) keep();
    return;
  }
  if (!kept) return lent_->tell(outcome);
  if (!later_) return;
  const CheckRequest next = *std::exchange(later_, std::nullopt);
  send(next);
}

void HereCheck::on_lost(const LaunchFailure& why) {
  over_ = why;
  if (lent_ != nullptr) lent_->lose(why);
}

void HereCheck::take_back() {
  lent_ = nullptr;
  later_.reset();
  if (!asking_ && !over_) keep();
}

JobReach::JobReach(const ReachSurroundings& around, std::unique_ptr<HostReach> hosts)
    : hosts_(std::move(hosts)), here_(around.loop, around.worker_path, !hosts_->has_threads()) {}

std::unique_ptr<HostTalk> JobReach::open(Reached where, HostTalk::OnLost on_lost) {
  return where ? hosts_->open(*where, std::move(on_lost)) : here_.lend(std::move(on_lost));
}

}  // namespace monarch
