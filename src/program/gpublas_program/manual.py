# SPDX-License-Identifier: MIT
"""gpublas print: the manual page and the completions, made from the definitions of the command line."""
import argparse


def commands_of(parser):
    """(name, summary, parser) of each command."""
    group = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return [(choice.dest, choice.help, group.choices[choice.dest]) for choice in group._choices_actions]


def flags_of(parser):
    return [action for action in parser._actions if action.option_strings]


def operands_of(parser):
    return [action for action in parser._actions
            if not action.option_strings and not isinstance(action, argparse._SubParsersAction)]


def takes_value(action):
    return action.nargs != 0


def help_of(action):
    return (action.help or "").replace("%%", "%")


# ---- the manual page

def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace(".", "\\&.")


def man_flag(action):
    value = f" \\fI{escape(action.metavar or action.dest.upper())}\\fR" if takes_value(action) else ""
    names = ", ".join(f"\\fB{escape(name)}\\fR" for name in action.option_strings)
    return [".TP", names + value, escape(help_of(action))]


def man_operand(action):
    name = f"\\fI{escape(action.metavar)}\\fR"
    if action.nargs == argparse.PARSER:
        return f"{name} [\\fIARGUMENT\\fR ...]"
    return f"[{name} ...]" if action.nargs == "*" else name


def man(parser, exit_codes):
    lines = [".\\\" SPDX-License-Identifier: MIT",
             ".\\\" Made by `gpublas print man`; ci/generated checks it.",
             ".TH GPUBLAS 1", ".SH NAME", "gpublas \\- see, use and measure libgpublas", ".SH SYNOPSIS"]
    for name, _, command in commands_of(parser):
        operands = " ".join(man_operand(action) for action in operands_of(command))
        lines += [f"\\fBgpublas {escape(name)}\\fR [\\fIFLAG\\fR ...] {operands}".rstrip(), ".br"]
    lines[-1:] = [".SH DESCRIPTION", escape(parser.description), ".SH FLAGS OF ALL COMMANDS"]
    common = {name for action in flags_of(parser) for name in action.option_strings}
    for action in flags_of(parser):
        lines += man_flag(action)
    lines.append(".SH COMMANDS")
    for name, _, command in commands_of(parser):
        lines += [f".SS {name}", escape(command.description)]
        for action in flags_of(command):
            if not set(action.option_strings) <= common:
                lines += man_flag(action)
    lines.append(".SH EXIT STATUS")
    for code, meaning in exit_codes:
        lines += [".TP", escape(code), escape(meaning)]
    lines += [".SH ENVIRONMENT",
              "Options of the library, which \\fBgpublas info\\fR lists, hold for this program and for what"
              " \\fBgpublas run\\fR starts\\&. NO_COLOR turns colour off\\&.",
              ".SH SEE ALSO", "README\\&.md and include/README\\&.md of libgpublas"]
    return "\n".join(lines) + "\n"


# ---- completions

def words(action):
    return " ".join(action.choices) if action.choices else ""


BASH = """\
# SPDX-License-Identifier: MIT
# Made by `gpublas print bash`; ci/generated checks it.
_gpublas() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= place= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            @flags with values@) ((i++)) ;;
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
@values@
    esac
    case $command in
@commands@
    esac
}
complete -o filenames -F _gpublas gpublas
"""


def bash_values(parsers):
    """What completes the value of a flag, as arguments of compgen: known words, files, or nothing."""
    values = {}
    for action in (action for parser in parsers for action in flags_of(parser) if takes_value(action)):
        known = f"-W '{words(action)}'" if action.choices or action.metavar != "FILE" else "-f"
        values["|".join(action.option_strings)] = known
    return values


def bash_command(name, words_of_it, more=""):
    return f"        {name}) COMPREPLY=($(compgen -W '{words_of_it.strip()}'{more} -- \"$word\")) ;;"


def bash(parser, _):
    commands = commands_of(parser)
    values = bash_values([parser] + [command for _, _, command in commands])
    lines = [bash_command("''", " ".join(name for name, _, _ in commands) + " " + flag_names(parser))]
    for name, _, command in commands:
        choices = " ".join(words(action) for action in operands_of(command)).strip()
        programs = any(action.metavar == "PROGRAM" for action in operands_of(command))
        lines.append(bash_command(name, f"{choices} {flag_names(command)}", " -c" if programs else ""))
    filled = {"flags with values": "|".join(sorted(values)), "commands": "\n".join(lines),
              "values": "\n".join(f"        {flags}) COMPREPLY=($(compgen {known} -- \"$word\")); return ;;"
                                  for flags, known in values.items())}
    text = BASH
    for place, part in filled.items():
        text = text.replace(f"@{place}@", part)
    return text


def flag_names(parser):
    return " ".join(name for action in flags_of(parser) for name in action.option_strings)


def zsh_quote(text):
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh_value(action):
    known = {"FILE": "_files", "PROGRAM": "_command_names -e"}
    return f"({words(action)})" if action.choices else known.get(action.metavar, "")


def zsh_flags(parser):
    specs = []
    for action in flags_of(parser):
        for name in action.option_strings:
            value = ""
            if takes_value(action):
                value = f":{(action.metavar or action.dest).lower()}:{zsh_value(action)}"
            specs.append(f"'{name}[{zsh_quote(help_of(action))}]{value}'")
    return specs


def zsh_operands(parser):
    specs = []
    for number, action in enumerate(operands_of(parser), 1):
        if action.nargs == "*":
            specs.append("'*:argument:'")
        else:
            specs.append(f"'{number}:{action.metavar.lower()}:{zsh_value(action)}'")
        if action.nargs == argparse.PARSER:
            specs.append("'*::arguments:_normal'")
    return specs


def zsh(parser, _):
    lines = ["#compdef gpublas", "# SPDX-License-Identifier: MIT",
             "# Made by `gpublas print zsh`; ci/generated checks it.", "_gpublas() {",
             "    local context state state_descr line", "    typeset -A opt_args", "    _arguments -C \\"]
    lines += [f"        {spec} \\" for spec in zsh_flags(parser)]
    lines += ["        '1:command:->command' '*::argument:->argument'", "    case $state in", "    command)",
              "        local -a commands=("]
    lines += [f"            '{name}:{zsh_quote(summary)}'" for name, summary, _ in commands_of(parser)]
    lines += ["        )", "        _describe command commands ;;", "    argument)",
              "        case $line[1] in"]
    for name, _, command in commands_of(parser):
        specs = zsh_flags(command) + zsh_operands(command)
        lines += [f"        {name})", "            _arguments \\"]
        lines += [f"                {spec} \\" for spec in specs[:-1]] + [f"                {specs[-1]} ;;"]
    lines += ["        esac ;;", "    esac", "}", "_gpublas \"$@\""]
    return "\n".join(lines) + "\n"


def main(arguments, _):
    from .program import EXIT_CODES
    print({"man": man, "bash": bash, "zsh": zsh}[arguments.what](arguments.parser, EXIT_CODES), end="")
    return 0
