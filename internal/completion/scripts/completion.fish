# fish completion of PROGRAM; load it with: PROGRAM completion fish | source
function __PROGRAM_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l program $typed[1]
    set -e typed[1]
    for line in ($program complete -- $typed "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :dirs
                __fish_complete_directories "$current"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
