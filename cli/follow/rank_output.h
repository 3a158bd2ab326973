#pragma once

// RankOutput: the output of ranks on its way to stdout and stderr: whole and in order from OutputFollower, as lines
// from LinePrinter, at the speed of whoever reads them. What is for a full writer is read neither from files nor from
// the supervisor; what is for the other one goes on, from files.
//
// Thread: the loop's. Lifetime: shorter than the loop's and the screen's.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "cli/follow/line_printer.h"
#include "cli/follow/rank_hosts.h"
#include "cli/term/screen.h"
#include "supervisor/client/link/supervisor_client.h"
#include "supervisor/client/output/output_follower.h"
#include "supervisor/core/spec/job_spec.h"
#include "transport/loop/event_loop.h"

namespace monarch {

struct RankOutputOptions {
  LineOptions lines = {};
  std::string job_id = {};
  std::string log_directory;
  std::function<bool(const StreamId&)> wanted = {};  // empty: all
  std::shared_ptr<const RankHosts> hosts;            // also the session's, which tells it of events, or nobody's
};

class RankOutput final : public OutputSink {
 public:
  RankOutput(EventLoop& loop, Screen& screen, const JobSpec& spec, RankOutputOptions options);
  ~RankOutput() override;

  void skip_what_is_there() { follower_.skip_what_is_there(); }
  void start_at(const OutputStart& start) { follower_.start_at(start); }
  // Looks at the files again and again, since what was dropped last is not followed by a piece that shows the gap.
  void watch_files();
  void look_at_files();

  // Pieces from here on; what was connected before is let go. `on_closed` as OutputConnection's.
  Status connect(const ViewerAddress& supervisor, const std::string& viewer, std::function<void(Error)> on_closed);
  void disconnect() { connection_.reset(); }

  // Shows no more.
  void stop();
  // No more will come: reads what is left, shows unfinished lines, then calls `done`.
  void finish(std::function<void()> done);

  // Called instead of a word on stderr when nobody reads stdout any more.
  void on_reader_gone(std::function<void()> call) { on_reader_gone_ = std::move(call); }

  void on_output(const StreamId& stream, std::string_view bytes, std::optional<WallTime> written) override;
  void on_lost(const StreamId& stream, std::uint64_t bytes) override;
  bool takes(const StreamId& stream) const override { return !writer(stream.stream).full(); }

 private:
  struct Known {
    std::uint64_t key = 0;
    LineSource source;
  };
  const Known& known(const StreamId& stream);
  LinePrinter& printer(OutputStream stream) { return stream == OutputStream::kStdout ? out_printer_ : err_printer_; }
  OutputWriter& writer(OutputStream stream) const;
  void on_piece(const OutputPiece& piece);
  void pump();
  void pump_later(Duration delay);
  void look_later(Duration delay);
  void hold_back();
  void show_folded();
  void show_folded_later();
  void show_quiet();
  void show_quiet_later();
  void check_errors();
  void go_on();
  void finish_printing();

  EventLoop& loop_;
  Screen& screen_;
  LineStyle style_;
  bool folds_;
  std::string job_id_;
  const JobSpec& spec_;
  std::vector<std::string> mesh_names_;
  std::shared_ptr<const RankHosts> hosts_;
  LinePrinter out_printer_;
  LinePrinter err_printer_;
  OutputFollower follower_;
  std::map<StreamId, Known> streams_;
  std::unique_ptr<OutputConnection> connection_;
  TimerId pump_timer_ = 0;
  TimerId look_timer_ = 0;
  TimerId fold_timer_ = 0;
  TimerId quiet_timer_ = 0;
  Instant waiting_since_ = Instant::never();  // for bytes that no file holds yet
  std::function<void()> done_;
  std::function<void()> on_reader_gone_;
  bool out_lost_said_ = false;
  bool stopped_ = false;
};

}  // namespace monarch
