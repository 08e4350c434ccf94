import { Argument, type Command, type Option } from 'commander'
import type { Output } from '../terminal/output.ts'

type Shell = (commands: readonly Command[]) => readonly string[]

const SHELLS: Readonly<Record<string, Shell>> = { bash, zsh, fish }

/** Adds `weir completion`. It must be the last command, because it completes those that are there. */
export function addCompletion(program: Command, out: Output): void {
  program
    .command('completion')
    .summary('print a script that completes commands and options in your shell')
    .description('Prints a script that completes the commands and options of weir.')
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(SHELLS)))
    .addHelpText(
      'after',
      `
Examples:
  eval "$(weir completion bash)"                                (in ~/.bashrc)
  eval "$(weir completion zsh)"                                 (in ~/.zshrc, after compinit)
  weir completion fish > ~/.config/fish/completions/weir.fish   (once per version)`,
    )
    .action((shell: string) => {
      for (const line of (SHELLS[shell] as Shell)(program.commands)) out.line(line)
    })
}

/** A choice of words, for an option or an argument. */
function choicesOf({ argChoices }: Pick<Option, 'argChoices'>): readonly string[] {
  return argChoices ?? []
}

function flagsOf(command: Command): readonly string[] {
  return [...command.options.map(({ long }) => long ?? ''), '--help']
}

function argumentsOf(command: Command): readonly string[] {
  return command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
}

/** The first sentence, in single quotes of a shell. */
function quoted(text: string): string {
  return `'${(text.split('. ', 1)[0] ?? '').replaceAll("'", "'\\''")}'`
}

/** Completes files after all other words, by `-o default`. */
function bash(commands: readonly Command[]): readonly string[] {
  const reply = (words: readonly string[]): string => `COMPREPLY=($(compgen -W "${words.join(' ')}" -- "$cur")); return ;;`
  const values = commands.flatMap((command) =>
    command.options
      .filter((option) => choicesOf(option).length > 0)
      .map((option) => `    "${command.name()} ${option.long}") ${reply(choicesOf(option))}`),
  )
  return [
    '_weir() {',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: variables of the shell
    '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="${COMP_WORDS[1]}"',
    // The lists below have blanks, whatever the user's shell splits by.
    "  local IFS=$' \\t\\n'",
    '  [ "$COMP_CWORD" -eq 1 ] && command=',
    '  case "$command $prev" in',
    ...values,
    '  esac',
    '  case "$command $cur" in',
    `    " "*) ${reply([...commands.map((command) => command.name()), '--help', '--version'])}`,
    ...commands.map((command) => `    "${command.name()} -"*) ${reply(flagsOf(command))}`),
    ...commands
      .filter((command) => argumentsOf(command).length > 0)
      .map((command) => `    "${command.name()} "*) ${reply(argumentsOf(command))}`),
    '  esac',
    '}',
    'complete -o default -F _weir weir',
  ]
}

function zsh(commands: readonly Command[]): readonly string[] {
  const specOf = (option: Option): string => {
    const [choices, text] = [choicesOf(option), quoted(option.description.replace(/[[\]]/g, '\\$&')).slice(1, -1)]
    const value = option.required ? `:value:${choices.length > 0 ? `(${choices.join(' ')})` : '_files'}` : ''
    return `'${option.long}[${text}]${value}'`
  }
  return [
    '_weir() {',
    '  local -a commands=(',
    ...commands.map((command) => `    ${quoted(`${command.name()}:${command.summary()}`)}`),
    '  )',
    '  if (( CURRENT == 2 )); then _describe command commands; return; fi',
    '  shift words; (( CURRENT-- ))',
    '  case $words[1] in',
    ...commands.map((command) => {
      const choices = argumentsOf(command)
      const rest = choices.length > 0 ? `'1:argument:(${choices.join(' ')})'` : "'*:file:_files'"
      return `    ${command.name()}) _arguments ${[...command.options.map(specOf), rest].join(' ')} ;;`
    }),
    '  esac',
    '}',
    'compdef _weir weir',
  ]
}

function fish(commands: readonly Command[]): readonly string[] {
  return commands.flatMap((command) => {
    const within = `complete -c weir -n '__fish_seen_subcommand_from ${command.name()}'`
    const choices = argumentsOf(command)
    return [
      `complete -c weir -f -n __fish_use_subcommand -a ${command.name()} -d ${quoted(command.summary())}`,
      ...(choices.length > 0 ? [`${within} -f -a '${choices.join(' ')}'`] : []),
      ...command.options.map((option) => {
        const list = choicesOf(option)
        const value = list.length > 0 ? ` -x -a '${list.join(' ')}'` : option.required ? ' -r' : ''
        return `${within} -l ${option.long?.slice(2)}${value} -d ${quoted(option.description)}`
      }),
    ]
  })
}
