#include "worker/daemon/post_channel.h"

#include <utility>

#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"
#include "transport/messages/roster.h"
#include "worker/core/host_places.h"

namespace monarch::daemon {
namespace {

// It is replaced within 2 s of its last word.
constexpr Duration kAnswersWithin = Duration::milliseconds(1'500);

ServantOptions options_of(const PostSetup& setup) {
  const auto of_start = [setup](std::uint64_t start) {
    PostSetup its = setup;
    its.start.number = start;
    return frame_of(its, {.job = its.job});
  };
  return {.name = std::string(kPostArgument),
          .process = kPostProcess,
          .host_name = setup.host_name,
          .door = text(setup.directory, '/', kPostDaemonDoor),
          .setup = of_start,
          .job = setup.job,
          .memory_patience = {},
          .when_it_ends = "what was called from or on this host has an unknown end",
          .answers_within = kAnswersWithin};
}

}  // namespace

PostChannel::PostChannel(EventLoop& loop, const PostSetup& setup, ServantOrders orders, std::function<void()> on_report)
    : job_(setup.job),
      on_report_(std::move(on_report)),
      servant_(loop, options_of(setup), std::move(orders),
               {.on_connected =
                    [this] {
                      if (roster_) servant_.send(*roster_);
                    },
                .on_closed =
                    [this] {
                      if (std::exchange(report_, std::nullopt)) on_report_();
                    },
                .on_frame =
                    [this](const Frame& frame) {
                      return route(frame.header, frame.payload, when<PostReport>([this](const PostReport& report) {
                                     report_ = report;
                                     report_->before = before_;
                                     on_report_();
                                   }));
                    },
                .on_ended = [this](const std::string& how) { before_ = how; }}) {}

void PostChannel::pass_on(std::uint16_t type, std::string payload) {
  FrameHeader header{.job = job_};
  header.type = type;
  const Frame frame{header, std::move(payload)};
  servant_.send(frame);
  if (type == number_of<Roster>()) roster_ = frame;
}

void PostChannel::on_rank(const RankReport& report) {
  if (report.phase != RankPhase::kEnded) return;
  servant_.send(PostRankEnded{report.process, describe_end(report.end)});
}

}  // namespace monarch::daemon
