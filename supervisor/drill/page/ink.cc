#include "supervisor/drill/page/ink.h"

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::array<InkFacts, kInks> kInkFacts = {{
    {"new", "#4a90b8", "#3f7fa5", "new steps"},
    {"redone", "#d99a2b", "#c98a1f", "steps done again"},
    {"still", "#c8372d", "#e0483d", "no step"},
    {"deciding", "#8d6fb0", "#8468aa", "seen, not ordered yet"},
    {"waiting", "#7c5a3c", "#94714f", "waits for a host"},
    {"launching", "#3f7d3a", "#4f8d43", "launching"},
    {"starting", "#b9c94a", "#a3b23c", "program starts"},
    {"stopping", "#59636b", "#8b959d", "told to end"},
    {"idle", "#c6cfd5", "#414b53", "spare, or no rank"},
    {"up", "#86929b", "#75818a", "supervisor"},
}};

constexpr std::string_view kSheet = R"(
*{box-sizing:border-box}body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:1180px;margin:0 auto;padding:20px 16px 48px}
h1{font-size:24px;line-height:1.3;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:17px;margin:30px 0 8px}h3{font-size:14px;margin:14px 0 4px}
p{margin:4px 0 10px;overflow-wrap:anywhere}.dim,small{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.odd{color:var(--odd)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px 12px}.tile b{display:block;font-size:22px;line-height:1.25}.tile small{display:block;line-height:1.4}
.tile br{display:none}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}th{font-weight:600;color:var(--dim);font-size:13px;vertical-align:bottom}
td.n,th.n{text-align:right}td.n{white-space:nowrap}td.m{white-space:nowrap}td.w{min-width:150px;overflow-wrap:break-word}
.n+.w,.n+.m{padding-left:14px}.scroll{overflow-x:auto;margin-bottom:8px}
svg{display:block;width:100%;height:auto}svg text{fill:var(--fg)}svg .d{fill:var(--dim)}svg .grid{stroke:var(--line)}svg .fault{stroke:var(--bad)}svg .main{stroke:var(--fg)}
svg .badge{fill:var(--bg);stroke:var(--bad)}svg .bar{fill:var(--bad)}
details{border-bottom:1px solid var(--line);padding:5px 0}summary{cursor:pointer;overflow-wrap:anywhere}pre,code{font:13px ui-monospace,monospace}
pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px 12px;margin:6px 0;white-space:pre-wrap;overflow-wrap:anywhere}
.key{margin:6px 0;color:var(--dim)}.key span{white-space:nowrap;margin-right:12px}svg.swatch{display:inline;width:12px;height:12px;vertical-align:-1px;margin-right:5px}
@media (max-width:700px){.wide{display:none}.narrow{display:block!important}h1{font-size:20px}th,td{padding-right:8px}.tiles{grid-template-columns:1fr 1fr}}
@media print{@page{margin:12mm}body{max-width:none;padding:0;font-size:11px}th,pre,code{font-size:10px}td,th{padding:3px 5px 3px 0}td.w{min-width:0}.n+.w,.n+.m{padding-left:6px}
.wide{display:block!important}.narrow{display:none!important}.tiles{grid-template-columns:repeat(6,1fr)}.tile b{font-size:16px}.scroll{overflow:visible}
h2,h3,summary,.key,h2+p{break-after:avoid}svg,tr,.tiles,.picture,pre{break-inside:avoid}details::details-content{content-visibility:visible;height:auto;display:block}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)";
constexpr std::string_view kLight =
    "--fg:#1b1f23;--bg:#fff;--dim:#5c6670;--line:#d5dade;--card:#f6f8f9;--good:#1a7f37;--bad:#c8372d;--odd:#8a5a00;";
constexpr std::string_view kDark =
    "--fg:#e3e7ea;--bg:#14181b;--dim:#9aa5ad;--line:#343b41;--card:#1c2226;--good:#4cc26a;--bad:#ff6b5e;--odd:#e0a83c;";

std::string inks_of(std::string_view InkFacts::*colour) {
  std::string out;
  for (const InkFacts& facts : kInkFacts) out += text("--", facts.name, ":", facts.*colour, ";");
  return out;
}

}  // namespace

const InkFacts& facts_of(Ink ink) { return kInkFacts[static_cast<std::size_t>(ink)]; }

std::string swatch(Ink ink) {
  return text(
      "<svg class=\"swatch\" width=\"12\" height=\"12\" aria-hidden=\"true\" xmlns=\"http://www.w3.org/2000/svg\">"
      "<rect width=\"12\" height=\"12\" class=\"",
      facts_of(ink).name, "\" fill=\"", facts_of(ink).light, "\"/></svg>");
}

std::string key_of(const std::array<bool, kInks>& used) {
  std::string out = "<div class=\"key\">";
  for (std::size_t i = 0; i < kInks; ++i) {
    const Ink ink = static_cast<Ink>(i);
    if (used[i]) out += text("<span>", swatch(ink), " ", facts_of(ink).words, "</span> ");
  }
  return out + "</div>\n";
}

std::string style_sheet() {
  std::string out = text(":root{color-scheme:light dark;", kLight, inks_of(&InkFacts::light), "}",
                         "@media screen and (prefers-color-scheme:dark){:root{", kDark, inks_of(&InkFacts::dark), "}}");
  for (const InkFacts& facts : kInkFacts) out += text(".", facts.name, "{fill:var(--", facts.name, ")}");
  return out + std::string(kSheet);
}

}  // namespace monarch::drill
