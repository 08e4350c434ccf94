import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AWAITED } from '@weir/testing/store-tests/awaited'
import { alone, endOf, OF_STORES, PATIENCE, problemsOf } from '@weir/testing/store-tests/promises-settle'
import { bundlePrograms } from '@weir/tooling/bundle'
import { afterAll, beforeAll, expect, it } from 'vitest'

/** The outcomes of promises that need no server, by their program. */
const OUTCOMES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'awaits-frameworks': {
    hono: 429,
    web: '429 429',
    fastify: 429,
    'the dashboard in fastify': 'closed',
    nestjs: 429,
    'stores of other libraries': '1 true',
  },
  'awaits-alone': {
    loadCode: '/',
    'file rules: read and replace': true,
    'file rules: ready and close': 1,
    'http rules that never come: ready and close': 'away',
    'http rules: read': true,
    faultProxy: true,
    trySpellings: 0,
    simulate: 2,
    expectSimulation: 2,
    shorten: 1,
    'virtual time': 1_000,
    'a clock of its own and a simulated store': true,
  },
}

let folder: string
const fileOf = (program: string): string => join(folder, `${program}.mjs`)
beforeAll(async () => {
  const external = ['@nestjs/common', '@nestjs/core', '@nestjs/websockets', 'reflect-metadata', 'rxjs', 'fastify', 'hono']
  folder = await bundlePrograms(
    fileURLToPath(new URL('../..', import.meta.url)),
    Object.keys(OUTCOMES).map((program) => `test/packed/programs/${program}.ts`),
    external,
  )
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs several cases at a time, and returns their problems. */
async function problems(names: readonly string[], of: (name: string) => Promise<readonly unknown[]>): Promise<unknown[]> {
  const found: unknown[] = []
  const left = [...names]
  const next = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) found.push(...(await of(name)))
  }
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, next))
  return found
}

it.each(Object.entries(OUTCOMES))(
  'a promise that needs no server settles in a process that awaits nothing else, and the process ends: %s',
  async (program, outcomes) => {
    const wrong = await problems(Object.keys(outcomes), async (name) => {
      const { code, out, err } = await endOf(alone([fileOf(program), name, '', '1000']))
      const right = code === 0 && out.startsWith(JSON.stringify({ outcome: outcomes[name] }).slice(0, -1))
      return right ? [] : [{ name, code, out, err }]
    })
    expect(wrong).toEqual([])
  },
)

it.each(['in memory', 'in the parent'])('a promise settles where the store is in the same process: %s', async (where) => {
  const names = [...AWAITED.keys()].filter((name) => !/rules/.test(name) && (where === 'in memory' || OF_STORES(name)))
  const patience = String(PATIENCE.up)
  const wrong = await problems(names, async (name) =>
    problemsOf(name, 'up', await endOf(alone([fileOf('awaits-alone'), `${where}: ${name}`, '', patience]))),
  )
  expect(wrong).toEqual([])
})
