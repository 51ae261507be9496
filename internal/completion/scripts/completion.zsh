#compdef PROGRAM
# zsh completion of PROGRAM; load it with: source <(PROGRAM completion zsh)
_PROGRAM() {
  local line names
  local -a items
  while IFS= read -r line; do
    case $line in
      (:files|:dirs) names=$line ;;
      (*) items+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done < <("${words[1]}" complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)
  (( $#items )) && _describe PROGRAM items
  if [[ -n $names ]]; then
    [[ $PREFIX == --*=* ]] && compset -P '*='
    case $names in
      (:files) _files ;;
      (:dirs) _files -/ ;;
    esac
  fi
}
if [[ ${funcstack[1]} == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
