#include "supervisor/launch/slurm/shared_step.h"

#include <utility>

#include "transport/base/assert.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::int64_t kShareOfSilence = 3;
constexpr std::size_t kReasonBytes = 300;  // of what srun said

}  // namespace

Result<std::unique_ptr<SharedStep>> SharedStep::start(EventLoop& loop, Programs& programs,
                                                      std::vector<RemoteOrder> orders, ProgramTalkOptions options,
                                                      SharedStepHandlers handlers) {
  MONARCH_ASSERT(options.image != nullptr);
  std::unique_ptr<SharedStep> step(new SharedStep(loop, std::move(orders), std::move(options), std::move(handlers)));
  MONARCH_TRY(step->open(programs));
  return step;
}

Status SharedStep::open(Programs& programs) {
  MONARCH_ASSIGN(program_, PipedProgram::start(loop_, programs, std::move(options_.command), options_.log,
                                               {.on_output =
                                                    [this](const std::string& bytes) {
                                                      conversation_.on_output(bytes);
                                                      go_on();
                                                    },
                                                .on_written = [this] { expect_more(); },
                                                .on_end = [this](const std::optional<RankEnd>&,
                                                                 const std::string& rest) { on_program_end(rest); }}));
  expect_more();
  return {};
}

void SharedStep::withdraw(std::size_t node) {
  conversation_.withdraw(node);
  loop_.defer(scope_.guard([this] { go_on(); }));
}

void SharedStep::on_program_end(const std::string& rest) {
  ended_ = true;
  conversation_.on_output(rest);
  const std::string words = program_->said(kReasonBytes);
  if (!conversation_.over()) {
    log_warn("the srun of several workers has ended before those of ", conversation_.awaited(), ": ", printable(words));
  }
  conversation_.on_end(words);
  go_on();
}

void SharedStep::on_silence(const std::string& late) {
  log_warn("in a step of several workers there is no answer of ", conversation_.awaited(), late);
  conversation_.on_silence(late);
  expect_more();
  go_on();
}

// Only the loop comes here.
void SharedStep::go_on() {
  const Scope::Watch here = scope_.watch();
  for (std::vector<SharedNews> news = conversation_.take_news(); !news.empty(); news = conversation_.take_news()) {
    for (const SharedNews& each : news) {
      const auto* answer = std::get_if<SharedAnswer>(&each.word);
      serves_ = serves_ || (answer != nullptr && std::holds_alternative<BootstrapReply>(answer->answer));
      if (serves_) program_->spare();
      handlers_.on_news(each);
      if (here.gone()) return;
    }
  }
  if (!conversation_.over()) {
    write();
    // Whoever says something to no purpose keeps nobody waiting.
    const std::uint64_t progress = conversation_.progress();
    if (std::exchange(progress_, progress) != progress) expect_more();
    return;
  }
  deadline_.stop();
  program_->close_input();
  if (serves_ && !ended_) return;
  if (!ended_) program_->kill();
  const auto told = handlers_.on_end;
  told();
}

void SharedStep::write() {
  const bool copied = copy_began_ != Instant::never() && conversation_.starts();
  if (copied && copy_ == Duration()) copy_ = loop_.now() - copy_began_;
  for (SharedTurn& turn : conversation_.take_turns()) {
    if (turn.file && copy_began_ == Instant::never()) copy_began_ = loop_.now();
    program_->write(std::move(turn.bytes));
    if (turn.file) program_->write_lasting(options_.image->bytes);
  }
}

void SharedStep::expect_more() {
  // A worker that starts may take as long as in a step of its own; that a node is asked and says nothing is seen
  // sooner.
  const bool asks = conversation_.any_shown() && !conversation_.starts();
  const Duration silence = asks ? options_.silence / kShareOfSilence : options_.silence;
  deadline_.start(silence, [this](const std::string& late) { on_silence(late); });
}

}  // namespace monarch
