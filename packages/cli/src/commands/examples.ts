import type { Command } from 'commander'

const RULES = '--rules rules.yaml'

/** Examples of each command, for its help. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  plan: [
    `access.log ${RULES}`,
    `access.log.1.gz access.log ${RULES} --against today.yaml`,
    `access.log ${RULES} --sweep client.limit=30,60,120`,
    `access.log ${RULES} --fail-if 'rejected>1%' --format md`,
  ],
  suggest: ['access.log', 'access.log.1.gz access.log --interval 10s', 'access.log --output rules.yaml'],
  check: ['rules.yaml', 'rules.yaml --against main.yaml'],
  diff: ['rules.yaml --source redis://localhost:6379'],
  push: ['rules.yaml --source redis://localhost:6379'],
  log: ['--source redis://localhost:6379 --most 5'],
  rollback: ["--source redis://localhost:6379 --by alice --why 'too strict'"],
  top: ['--store redis://localhost:6379'],
  block: [`192.0.2.66 --for 10m --reason 'scans for passwords' ${RULES} --store redis://localhost:6379`],
  unblock: [`192.0.2.66 --policy login ${RULES} --store redis://localhost:6379`],
  reset: [`192.0.2.66 --policy login ${RULES} --store redis://localhost:6379`],
  usage: [`192.0.2.66 ${RULES} --store redis://localhost:6379`],
  audit: ['--store redis://localhost:6379 --most 20'],
  explain: [`192.0.2.66 ${RULES} --store redis://localhost:6379`],
}

/** Adds its examples to the help of a command. */
export function addExamples(command: Command): void {
  const examples = EXAMPLES[command.name()] ?? []
  if (examples.length === 0) return
  command.addHelpText('after', `\nExamples:\n${examples.map((example) => `  weir ${command.name()} ${example}`).join('\n')}`)
}
