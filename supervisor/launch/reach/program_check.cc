#include "supervisor/launch/reach/program_check.h"

#include <utility>
#include <variant>

#include "supervisor/launch/reach/carried_talk.h"

namespace monarch {

namespace {

class ProgramCarrier final : public CheckCarrier {
 public:
  explicit ProgramCarrier(CarrierHandlers handlers) : handlers_(std::move(handlers)) {}

  Status open(EventLoop& loop, Programs& programs, RemoteOrder order, ProgramTalkOptions options) {
    MONARCH_ASSIGN(talk_, ProgramTalk::start(loop, programs, std::move(order), std::move(options),
                                             {.on_place = {},
                                              .on_answer = [this](const RemoteAnswer& answer) { on_end(answer); },
                                              .on_end = {},
                                              .on_heard = [this](const std::string& bytes) { on_heard(bytes); }}));
    told_ = talk_->talking();
    return {};
  }
  bool ready() const override { return told_; }
  void say(std::string bytes) override { talk_->say(bytes); }

 private:
  void on_heard(const std::string& bytes) {
    if (!std::exchange(told_, true)) handlers_.on_ready();
    const auto told = handlers_.on_heard;
    if (!bytes.empty()) told(bytes);
  }
  void on_end(const RemoteAnswer& answer) {
    const auto* failure = std::get_if<LaunchFailure>(&answer);
    const LaunchFailure why = failure != nullptr
                                  ? *failure
                                  : LaunchFailure{.kind = LaunchFailureKind::kClosed,
                                                  .phase = "check",
                                                  .elapsed = {},
                                                  .message = "monarch-worker check ended: its time there was over",
                                                  .words = {},
                                                  .again = {}};
    const auto told = handlers_.on_failed;
    told(why);
  }

  CarrierHandlers handlers_;
  bool told_ = false;
  std::unique_ptr<ProgramTalk> talk_;
};

}  // namespace

std::unique_ptr<HostTalk> program_check(EventLoop& loop, Programs& programs, RemoteOrder order,
                                        ProgramTalkOptions options, HostTalk::OnLost on_lost) {
  const auto carry = [&](CarrierHandlers handlers) -> Result<std::unique_ptr<CheckCarrier>> {
    auto carrier = std::make_unique<ProgramCarrier>(std::move(handlers));
    MONARCH_TRY(carrier->open(loop, programs, std::move(order), std::move(options)));
    return std::unique_ptr<CheckCarrier>(std::move(carrier));
  };
  return std::make_unique<CarriedTalk>(loop, carry, std::move(on_lost));
}

std::unique_ptr<HostTalk> check_here(EventLoop& loop, Programs& programs, const std::string& worker,
                                     HostTalk::OnLost on_lost) {
  RemoteOrder order{.purpose = RemotePurpose::kCheck, .installed = worker, .speaks = true};
  ProgramTalkOptions options{.command = {worker, "check"},
                             .image = nullptr,
                             .program = "monarch-worker",
                             .place = "an answer",
                             .none = "not answered",
                             .kind_of = [](std::string_view) { return LaunchFailureKind::kOther; }};
  return program_check(loop, programs, std::move(order), std::move(options), std::move(on_lost));
}

}  // namespace monarch
