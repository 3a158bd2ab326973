#include "supervisor/client/stacks/ask_stacks.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "supervisor/client/link/supervisor_client.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/stacks.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {

namespace {

constexpr Duration kNetwork = Duration::seconds(1);        // for a question and its answer on the way
constexpr Duration kLongestWait = Duration::seconds(120);  // for the turn of one among many

// Between two answers: the supervisor's own, and the time of one that is busy.
Duration patience_for(const StacksRequest& request, const std::vector<std::string>& hosts) {
  std::map<std::string, std::uint32_t> asked;
  std::uint32_t most = 1;
  for (const std::string& host : hosts) most = std::max(most, ++asked[host]);
  return patience_with_host(request.limit, most) + kNetwork + kAnswerDeadline;
}

class Question {
 public:
  Question(EventLoop& loop, const StacksRequest& request, const std::vector<std::string>& hosts)
      : loop_(loop), request_(request), hosts_(hosts), patience_(patience_for(request, hosts)) {}
  ~Question() { loop_.cancel(deadline_); }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  Status ask(const ViewerAddress& address) {
    MONARCH_ASSIGN(ViewerSocket connected, connect_viewer(address));
    far_ = std::move(connected.far);
    MONARCH_ASSIGN(channel_, SeqpacketChannel::create(
                                 loop_, std::move(connected.socket),
                                 {.on_frame = [this](const Frame& frame, std::vector<UniqueFd>) { on_frame(frame); },
                                  .on_closed = [this](Error why) { fail(std::move(why)); }}));
    wait();
    return channel_->send(frame_of(request_, {.call = 1}));
  }

  Result<std::vector<RankStacks>> take() {
    if (failure_ && answers_.empty()) return std::move(*failure_);
    std::vector<RankStacks> answers;
    for (std::size_t i = 0; i < request_.ranks.size(); ++i) {
      const auto told = answers_.find(request_.ranks[i]);
      if (told != answers_.end()) {
        answers.push_back(std::move(told->second));
        continue;
      }
      RankStacks& none = answers.emplace_back();
      none.rank = request_.ranks[i];
      if (i < hosts_.size()) none.host = hosts_[i];
      none.stacks.end = StacksEnd::kUnreachable;
      if (failure_) none.stacks.detail = failure_->message;
    }
    return answers;
  }

 private:
  void wait() {
    loop_.cancel(deadline_);
    deadline_ = loop_.at(boot_now() + patience_, [this] {
      fail(Error{ErrorCode::kTimeout, text("the supervisor said nothing for ", to_text(patience_), "; ",
                                           answers_.size(), " of ", request_.ranks.size(), " ranks had answered")});
    });
  }

  void fail(Error why) {
    if (!failure_) failure_ = std::move(why);
    loop_.stop();
  }

  void on_frame(const Frame& frame) {
    const Status heard = route(frame.header, frame.payload, when<Refused>([&](const Refused& refused) {
                                 fail({ErrorCode::kInvalid, refused.message});
                               }),
                               when<RankStacks>([&](RankStacks&& answer) {
                                 const RankId rank = answer.rank;
                                 answers_[rank] = std::move(answer);
                                 if (answers_.size() >= request_.ranks.size()) return loop_.stop();
                                 wait();
                               }));
    if (!heard.ok() && heard.error().code != ErrorCode::kUnsupported) fail(heard.error());
  }

  EventLoop& loop_;
  const StacksRequest& request_;
  const std::vector<std::string>& hosts_;
  Duration patience_;
  std::unique_ptr<FarLink> far_;
  std::unique_ptr<SeqpacketChannel> channel_;
  std::map<RankId, RankStacks> answers_;
  std::optional<Error> failure_;
  TimerId deadline_ = 0;
};

}  // namespace

Duration patience_with_host(Duration limit, std::uint32_t ranks) {
  const std::uint32_t turns = (ranks + limits::kStacksAtOnce - 1) / limits::kStacksAtOnce;
  return std::min(limit * turns, std::max(limit, kLongestWait)) + kNetwork;
}

Result<std::vector<RankStacks>> ask_stacks(const ViewerAddress& address, const StacksRequest& request,
                                           const std::vector<std::string>& hosts) {
  MONARCH_ASSIGN(const auto loop, EventLoop::create());
  Question question(*loop, request, hosts);
  MONARCH_TRY(question.ask(address));
  loop->run();
  return question.take();
}

}  // namespace monarch
