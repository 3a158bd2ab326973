#include "supervisor/drill/page/svg.h"

#include <algorithm>
#include <array>
#include <utility>

#include "supervisor/drill/page/page_text.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// Name of the class, colour where styles are refused.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPens = {
    {{"grid", "#d5dade"}, {"fault", "#c8372d"}, {"main", "#1b1f23"}}};
constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};

std::string path_of(const Box& box) {
  return text("M", decimals(box.x), " ", decimals(box.y), "h", decimals(box.width), "v", decimals(box.height), "h-",
              decimals(box.width), "z");
}

}  // namespace

bool Svg::is_wide() const { return width_ > 600; }

void Svg::title(std::string_view words) {
  if (!words.empty()) parts_ += text("<title>", page_text(words), "</title>");
}

void Svg::begin(Ink ink) {
  parts_ += text("<g class=\"", facts_of(ink).name, "\" fill=\"", facts_of(ink).light, "\">");
}

void Svg::box(const Box& box, std::string_view words) {
  if (words.empty()) {
    path_ += path_of(box);
    return;
  }
  parts_ += text("<path d=\"", path_of(box), "\">");
  title(words);
  parts_ += "</path>";
}

void Svg::end() {
  if (!path_.empty()) parts_ += text("<path d=\"", std::exchange(path_, ""), "\"/>");
  parts_ += "</g>";
}

void Svg::bar(const Box& box, std::string_view words) {
  parts_ += text("<path class=\"bar\" fill=\"#c8372d\" d=\"", path_of(box), "\">");
  title(words);
  parts_ += "</path>";
}

void Svg::line(const Line& line) {
  const auto& [name, colour] = kPens[static_cast<std::size_t>(line.pen)];
  parts_ += text("<line class=\"", name, "\" stroke=\"", colour, "\" x1=\"", decimals(line.from.x), "\" y1=\"",
                 decimals(line.from.y), "\" x2=\"", decimals(line.to.x), "\" y2=\"", decimals(line.to.y), "\"");
  if (!line.dash.empty()) parts_ += text(" stroke-dasharray=\"", line.dash, "\"");
  parts_ += ">";
  title(line.title);
  parts_ += "</line>";
}

void Svg::words(const Caption& caption) {
  parts_ += text("<text x=\"", decimals(caption.at.x), "\" y=\"", decimals(caption.at.y), "\"");
  if (caption.dim) parts_ += " class=\"d\"";
  if (caption.anchor != Anchor::kStart) {
    parts_ += text(" text-anchor=\"", kAnchors[static_cast<std::size_t>(caption.anchor)], "\"");
  }
  parts_ += ">";
  title(caption.title);
  parts_ += page_text(caption.words) + "</text>";
}

void Svg::area(Ink ink, std::string_view path, std::string_view opacity) {
  parts_ += text("<path class=\"", facts_of(ink).name, "\" fill=\"", facts_of(ink).light, "\" fill-opacity=\"", opacity,
                 "\" d=\"", path, "\"/>");
}

void Svg::badge(Point centre, std::string_view number, bool hollow, std::string_view words) {
  const double radius = is_wide() ? 8 : 7;
  parts_ += "<g>";
  title(words);
  parts_ += text("<circle class=\"badge\" cx=\"", decimals(centre.x), "\" cy=\"", decimals(centre.y), "\" r=\"",
                 decimals(radius), "\" fill=\"#fff\" stroke=\"#c8372d\"", hollow ? " stroke-dasharray=\"2 2\"" : "",
                 "/><text x=\"", decimals(centre.x), "\" y=\"", decimals(centre.y + 3.5),
                 "\" text-anchor=\"middle\" font-size=\"10\">", page_text(number), "</text></g>");
}

void Svg::dot(Point centre, std::string_view words) {
  parts_ += text("<circle class=\"new\" fill=\"", facts_of(ink_of(TimeBin::kNew)).light,
                 "\" fill-opacity=\"0.7\" cx=\"", decimals(centre.x), "\" cy=\"", decimals(centre.y), "\" r=\"4\">");
  title(words);
  parts_ += "</circle>";
}

std::string Svg::finish(double height, std::string_view sentence) const {
  return text("<svg viewBox=\"0 0 ", decimals(width_), " ", decimals(height), "\" width=\"", decimals(width_),
              "\" height=\"", decimals(height), "\" role=\"img\" aria-label=\"", page_text(sentence, 1000),
              "\" font-size=\"11\" font-family=\"sans-serif\" xmlns=\"http://www.w3.org/2000/svg\">", parts_, "</svg>");
}

}  // namespace monarch::drill
