# SPDX-License-Identifier: MIT
# Made by `gpublas print bash`; ci/generated checks it.
_gpublas() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= place= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --color|--csv|--kernels|--library|--plot|--report|--routine|--seconds|--sizes|--trace|--types) ((i++)) ;;
            -*) ;;
            *) if [ "$command" ]; then place=$i; break; fi; command=${COMP_WORDS[i]} ;;
        esac
    done
    # As the program itself would be completed.
    if [ "$command" = run ] && [ "$place" ]; then
        declare -F _command_offset > /dev/null && _command_offset "$place"
        return
    fi
    case $before in
        --color) COMPREPLY=($(compgen -W 'auto always never' -- "$word")); return ;;
        --library) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --report) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --trace) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --routine) COMPREPLY=($(compgen -W '' -- "$word")); return ;;
        --types) COMPREPLY=($(compgen -W '' -- "$word")); return ;;
        --sizes) COMPREPLY=($(compgen -W '' -- "$word")); return ;;
        --seconds) COMPREPLY=($(compgen -W '' -- "$word")); return ;;
        --kernels) COMPREPLY=($(compgen -W '' -- "$word")); return ;;
        --csv) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --plot) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    case $command in
        '') COMPREPLY=($(compgen -W 'info run why bench tune print -h --help -q --quiet --color --library --version' -- "$word")) ;;
        info) COMPREPLY=($(compgen -W '-h --help -q --quiet --color --library --all --json' -- "$word")) ;;
        run) COMPREPLY=($(compgen -W '-h --help -q --quiet --color --library --report --trace --no-report --json' -c -- "$word")) ;;
        why) COMPREPLY=($(compgen -W '-h --help -q --quiet --color --library --json' -- "$word")) ;;
        bench) COMPREPLY=($(compgen -W '-h --help -q --quiet --color --library --routine --types --sizes --seconds --kernels --csv --json --plot' -- "$word")) ;;
        tune) COMPREPLY=($(compgen -W '-h --help -q --quiet --color --library --routine --types --sizes --again --json' -- "$word")) ;;
        print) COMPREPLY=($(compgen -W 'man bash zsh -h --help -q --quiet --color --library' -- "$word")) ;;
    esac
}
complete -o filenames -F _gpublas gpublas
