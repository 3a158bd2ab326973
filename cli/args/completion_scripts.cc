// What the shells load: each asks `monarch complete` with the words up to the cursor, and shows what it answers.

#include "cli/args/completion.h"

namespace monarch {

namespace {

constexpr std::string_view kBash = R"(# bash completion for monarch; made by `monarch completion bash`
_monarch() {
  local program=${COMP_WORDS[0]/#\~/$HOME} current=${COMP_WORDS[COMP_CWORD]} line directive=
  local IFS=$'\n'
  COMPREPLY=()
  [ "$current" = = ] && current=
  while read -r line; do
    case $line in
      :*) directive=$line ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("$program" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case $directive in
    :files) COMPREPLY+=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null ;;
    :folders) COMPREPLY+=($(compgen -d -- "$current")); compopt -o filenames 2>/dev/null ;;
  esac
  [ ${#COMPREPLY[@]} -ne 1 ] || [[ ${COMPREPLY[0]} != *[=.] ]] || compopt -o nospace 2>/dev/null
  return 0
}
complete -F _monarch monarch
)";

constexpr std::string_view kZsh = R"(#compdef monarch
# zsh completion for monarch; made by `monarch completion zsh`
_monarch() {
  local -a lines described
  local line word directive program=${words[1]/#\~/$HOME}
  lines=("${(@f)$("$program" complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    if [[ $line == :* ]]; then
      directive=$line
    else
      word=${line%%$'\t'*}
      described+=("${word//:/\\:}${${line#$word}/$'\t'/:}")
    fi
  done
  (( ${#described} )) && _describe -t monarch monarch described
  case $directive in
    (:files) _files ;;
    (:folders) _files -/ ;;
  esac
}
if [[ $funcstack[1] == _monarch ]]; then
  _monarch "$@"
else
  compdef _monarch monarch
fi
)";

constexpr std::string_view kFish = R"(# fish completion for monarch; made by `monarch completion fish`
function __monarch_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    for line in ($program complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':folders'
                __fish_complete_directories "$current"
            case ':none'
            case '*'
                echo $line
        end
    end
end
complete -c monarch -f -a '(__monarch_complete)'
)";

}  // namespace

std::vector<std::string> completion_shells() { return {"bash", "zsh", "fish"}; }

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return {};
}

}  // namespace monarch
