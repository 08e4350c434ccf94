import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench } from '../harness/bench.ts'
import { inTurn, PROGRAMS, runProgram } from '../harness/programs.ts'
import { round } from '../harness/report.ts'
import { median, spread } from '../harness/statistics.ts'
import type { ImportInput, ImportResult } from './program.ts'

const PACKAGES = fileURLToPath(new URL('../../..', import.meta.url))
/** Processes per contender and round, because most of the noise comes from the disk and other processes. */
const PROCESSES = 7

const PAIRS = [
  { before: ['express'], weir: ['@weir/express'], peers: ['express-rate-limit'], most: 2 },
  {
    before: ['express', 'ioredis'],
    weir: ['@weir/express', '@weir/redis'],
    peers: ['express-rate-limit', 'rate-limit-redis'],
    most: 1.5,
  },
]

/** The time that Weir adds to the start of an application: its import, once the framework and the store's client are loaded. */
export const imports: Bench = async ({ rounds, quick }) => {
  const contenders = PAIRS.flatMap(({ before, weir, peers }): ImportInput[] => [
    { before, modules: weir },
    { before, modules: peers },
  ])
  installPackages()
  const results = await inTurn(contenders, rounds * (quick ? 1 : PROCESSES), (contender) =>
    runProgram<ImportResult>('import', contender, { execArgv: ['--expose-gc'] }),
  )
  const of = (modules: readonly string[]) => contenders.filter((one) => one.modules === modules).flatMap((one) => results.get(one) ?? [])
  const middle = (modules: readonly string[]) => median(of(modules).map(({ wall }) => wall))
  return [
    {
      title: 'Importing, after the framework and the client, ms',
      rows: contenders.map(({ before, modules }) => {
        const { min, max } = spread(of(modules).map(({ wall }) => wall))
        return {
          imported: modules.join(' + '),
          after: before.join(' + '),
          ms: round(middle(modules)),
          'min–max': `${round(min)}–${round(max)}`,
          CPU: round(median(of(modules).map(({ cpu }) => cpu))),
        }
      }),
      goals: PAIRS.map(({ weir, peers, most }) => ({
        what: `${weir.join(' + ')}, times ${peers.join(' + ')}`,
        value: middle(weir) / middle(peers),
        most,
      })),
    },
  ]
}

/**
 * Copies the built packages next to the program, like an installer. In the workspace `@weir/redis` has its own client, and would
 * load it a second time.
 */
function installPackages(): void {
  for (const name of ['core', 'express', 'redis']) {
    const target = join(PROGRAMS, 'node_modules/@weir', name)
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    for (const part of ['dist', 'package.json']) cpSync(join(PACKAGES, name, part), join(target, part), { recursive: true })
  }
}
