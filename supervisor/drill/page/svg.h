#pragma once

// Svg: one picture of the page, piece by piece. Its words and titles are escaped here.
//
// Thread: a value.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "supervisor/drill/page/ink.h"

namespace monarch::drill {

struct Point {
  double x = 0;
  double y = 0;
};
struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

enum class Pen : std::uint8_t { kGrid, kFault, kMain };
enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

struct Line {
  Pen pen = Pen::kGrid;
  Point from;
  Point to;
  std::string_view dash;  // empty: it is solid
  std::string title;
};
struct Caption {
  Point at;
  std::string words;
  Anchor anchor = Anchor::kStart;
  bool dim = true;
  std::string title;
};

class Svg {
 public:
  explicit Svg(double width) : width_(width) {}

  double width() const { return width_; }
  bool is_wide() const;

  // Boxes of one ink; without a title they are one path.
  void begin(Ink ink);
  void box(const Box& box, std::string_view title);
  void end();
  void bar(const Box& box, std::string_view title);  // in the colour of faults
  void line(const Line& line);
  void words(const Caption& caption);
  void area(Ink ink, std::string_view path, std::string_view opacity);
  void badge(Point centre, std::string_view number, bool hollow, std::string_view title);
  void dot(Point centre, std::string_view title);

  // `sentence` is what is read aloud in its place.
  std::string finish(double height, std::string_view sentence) const;

 private:
  void title(std::string_view words);

  double width_;
  std::string parts_;
  std::string path_;  // of the boxes without a title
};

inline constexpr double kWidePicture = 1148;
inline constexpr double kNarrowPicture = 400;

// The same picture for a screen and for a telephone; `drawn(width)` makes it.
template <class Draw>
std::string both_widths(const Draw& drawn) {
  return "<div class=\"wide picture\">" + drawn(kWidePicture) + "</div>\n<div class=\"narrow picture\" hidden=\"\">" +
         drawn(kNarrowPicture) + "</div>\n";
}

}  // namespace monarch::drill
