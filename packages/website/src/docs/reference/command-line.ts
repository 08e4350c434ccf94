import { Readable, Writable } from 'node:stream'
import { run } from '@weir/cli'

/** The commands of `weir`. */
export const COMMANDS: readonly string[] = [
  'plan',
  'suggest',
  'check',
  'diff',
  'push',
  'log',
  'rollback',
  'top',
  'block',
  'unblock',
  'reset',
  'usage',
  'explain',
  'audit',
  'completion',
]

/** The help texts by the names of their marks, as the program prints them. */
export async function helpTexts(): Promise<Record<string, string>> {
  const texts: Record<string, string> = { 'cli-help': await helpOf(['--help']) }
  for (const command of COMMANDS) texts[`cli-${command}`] = await helpOf([command, '--help'])
  return texts
}

async function helpOf(args: readonly string[]): Promise<string> {
  let printed = ''
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      printed += String(chunk)
      done()
    },
  })
  const status = await run(args, { stdin: Readable.from([]), stdout, stderr: stdout, env: {} }, '')
  if (status !== 0) throw new Error(`weir ${args.join(' ')} ended with ${status}: ${printed}`)
  return `\`\`\`text\n${printed.trim()}\n\`\`\``
}
