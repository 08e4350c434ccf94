import { WeirError } from '@weir/core'
import { nearest } from '@weir/core/inspect'
import { RulesError } from '@weir/core/rules'
import { Command, CommanderError } from 'commander'
import { NoProcess } from './cluster/no-process.ts'
import { addAudit } from './commands/audit.ts'
import { addCompletion } from './commands/completion.ts'
import { addExamples } from './commands/examples.ts'
import { addExplain } from './commands/explain.ts'
import { addKeys } from './commands/keys.ts'
import { addPlan } from './commands/plan.ts'
import { addRules } from './commands/rules.ts'
import { addSuggest } from './commands/suggest.ts'
import { addTop } from './commands/top.ts'
import { FINE, REJECTED, WRONG_USE } from './terminal/exit-codes.ts'
import { Output, type Surroundings } from './terminal/output.ts'
import { safeText } from './terminal/text.ts'
import { UsageError } from './terminal/usage-error.ts'

const EXIT_CODES = `
Exit code 0 is success. 1 means that the answer is no: rules are rejected or differ, another change
was faster, or no process uses the store or the rules. 2 is an error: wrong use, or a file or server
that can't be read or reached. weir plan also ends with 3 for stricter rules, and with 4 for looser
ones.`

/** The command with all its subcommands. `end` receives the exit code. */
export function programOf(out: Output, version: string, end: (code: number) => void): Command {
  const { stdout, stderr } = out.surroundings
  const program = new Command('weir')
    .description('Tests rules for the rate limiter Weir before you use them, publishes them, and shows and changes the keys of a cluster.')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', EXIT_CODES)
    .showHelpAfterError('(weir --help lists the commands)')
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .configureHelp({ helpWidth: out.width, showGlobalOptions: false })
  addPlan(program, out, end)
  addSuggest(program, out, end)
  addRules(program, out, end)
  addTop(program, out)
  addKeys(program, out)
  addExplain(program, out)
  addAudit(program, out)
  addCompletion(program, out)
  program.helpCommand('help [command]', 'show the help of a command')
  for (const command of program.commands) {
    addExamples(command)
    command
      .copyInheritedSettings(program)
      .helpOption('-h, --help', 'show this help')
      .showHelpAfterError(`(weir ${command.name()} --help lists the options)`)
      .configureOutput({ outputError: (text, write) => write(suggested(text, command)) })
  }
  return program
}

/** Adds a suggestion to a message about an unknown option, also if other tools use that name. Commander suggests only similar names. */
function suggested(text: string, command: Command): string {
  const [, name] = /^error: unknown option '--([^']+)'\n$/.exec(text) ?? []
  const known = command.options.map(({ long }) => long?.slice(2) ?? '')
  const near = name === undefined ? undefined : nearest(name.replaceAll('-', ''), known)
  return near === undefined ? text : `${text}(Did you mean --${near}?)\n`
}

/**
 * Runs the command.
 *
 * @param args without the name of the program
 * @returns 0 on success, 1 if rules are rejected or differ, 2 if the command could not run
 */
export async function run(args: readonly string[], surroundings: Surroundings, version: string): Promise<number> {
  const out = new Output(surroundings)
  let code = FINE
  try {
    await programOf(out, version, (ended) => {
      code = ended
    }).parseAsync([...args], { from: 'user' })
    return code
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? FINE : WRONG_USE
    return failed(error, wantsJson(args), out)
  }
}

/** Whether the result is JSON: with `--json`, or in `weir plan` with `--format json`. */
function wantsJson(args: readonly string[]): boolean {
  return args.includes('--json') || args.includes('--format=json') || args[args.indexOf('--format') + 1] === 'json'
}

function failed(error: unknown, json: boolean, out: Output): number {
  const { red } = out.colors
  if (error instanceof RulesError && json) {
    out.json({ rejected: error.problems })
    return REJECTED
  }
  if (error instanceof RulesError) {
    out.note(red('The rules are rejected:'))
    for (const { path, line, column, message } of error.problems) {
      const place = [path, line === undefined ? '' : `line ${line}, column ${column}`].filter((part) => part !== '').join(', ')
      out.note(`  ${place === '' ? '' : `${safeText(place, 200)}: `}${message}`)
    }
    return REJECTED
  }
  if (error instanceof UsageError || error instanceof WeirError) {
    out.note(`weir: ${safeText(error.message, 1_000)}`)
    return error instanceof NoProcess ? REJECTED : WRONG_USE
  }
  throw error
}
