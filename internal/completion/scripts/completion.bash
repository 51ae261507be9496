# bash completion of PROGRAM; load it with: source <(PROGRAM completion bash)
_PROGRAM() {
  local line names= tail=$2
  # bash breaks words at "=" and ":" too, and then calls that the word.
  case $tail in = | :) tail= ;; esac
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) names=-f ;;
      :dirs) names=-d ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("$1" complete --line="${COMP_LINE:0:COMP_POINT}" --tail="$tail" 2>/dev/null)
  if [ -n "$names" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen $names -- "$tail")
  fi
}
complete -F _PROGRAM PROGRAM
