import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { WeirError } from '../../src/report/errors.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene, thrownBy } from '../support/nodes.ts'

function logger() {
  const lines: { level: string; fields: object; message: string }[] = []
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message })
  }
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn') }
}

test('a logger is told of changes of state, and of nothing else', async () => {
  const { world, node, store } = scene()
  const log = logger()
  const throttler = node({ name: 'user', limit: 4, interval: '1m', cooldown: '1m' }, { logger: log, maxKeys: 2 })
  throttler.start()
  await world.run(10)
  offer(throttler, 'a', 1_000)
  throttler.check('b')
  throttler.check('c')
  throttler.check('b', Number.NaN)
  store.health = 'rejecting'
  await world.run(3_000)
  store.health = 'up'
  node({ limit: 4, interval: '1m' }).start()
  await world.run(3_000)
  expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
    ['warn', 'weir: the table of keys is full'],
    ['warn', expect.stringContaining('counts as 1')],
    ['warn', 'weir: the store is down, so policies use their failMode'],
    ['info', 'weir: the store answers again'],
    ['debug', 'weir: the number of processes changed'],
  ])
  expect(log.lines[0]?.fields).toEqual({ node: throttler.nodeId, policy: 'user', maxKeys: 2 })
  expect(log.lines[2]?.fields).toEqual({ node: throttler.nodeId, err: expect.any(Error) })
})

test('something that is no logger is rejected', () => {
  expect(thrownBy(() => scene().node({ limit: 1, interval: '1m' }, { logger: { info() {} } as never }))).toMatchObject({
    code: 'WEIR_INVALID_OPTION',
    message: expect.stringContaining('logger'),
  })
})

test('what an error says reaches a log on one line and without escapes, however deep it is', async () => {
  const { world, node, store } = scene()
  const log = logger()
  const raw = '\u001b[31mred\nWARN forged line'
  const throttler = node({ limit: 2, interval: '1m' }, { logger: log })
  adapterOf(throttler).warn(new WeirError('WEIR_INVALID_KEY', raw, { cause: new Error(raw, { cause: raw }) }))
  throttler.start()
  await world.run(10)
  store.failure = Object.assign(new Error(raw, { cause: new Error(raw) }), { name: raw, code: raw })
  store.health = 'rejecting'
  await world.run(3_000)
  const errors = log.lines.map(({ fields }) => (fields as { err?: Error }).err)
  expect(errors.filter(Boolean)).toHaveLength(2)
  for (const error of errors) {
    const shown = inspect(error)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what is looked for
    expect(shown).not.toMatch(/\u001b/)
    expect(shown).not.toMatch(/^WARN/m)
  }
})

test('a logger of no more than error and warn is told in the message', async () => {
  const { world, node, store } = scene()
  const lines: (readonly string[])[] = []
  const log = { error: () => lines.push(['error']), warn: (...given: string[]) => lines.push(given) }
  const throttler = node({ name: 'user', limit: 4, interval: '1m' }, { logger: log })
  throttler.start()
  await world.run(10)
  throttler.check('b', Number.NaN)
  store.failure = new Error('away\nforged line')
  store.health = 'rejecting'
  await world.run(3_000)
  store.health = 'up'
  await world.run(3_000)
  const { nodeId } = throttler
  expect(lines).toEqual([
    [expect.stringMatching(new RegExp(`^weir: .*counts as 1.* \\(node: ${nodeId}, code: WEIR_WARN_INVALID_COST\\)$`)), 'Weir'],
    [`weir: the store is down, so policies use their failMode (node: ${nodeId}, err: away forged line)`, 'Weir'],
  ])
})

test('a logger without info, but with log and debug, is told by these, bound to it', async () => {
  const { world, node, store } = scene()
  class Log {
    readonly lines: string[] = []
    error(): void {}
    warn(message: string): void {
      this.lines.push(`warn ${message}`)
    }
    log(message: string): void {
      this.lines.push(`log ${message}`)
    }
    debug(message: string): void {
      this.lines.push(`debug ${message}`)
    }
  }
  const log = new Log()
  node({ limit: 4, interval: '1m' }, { logger: log }).start()
  await world.run(10)
  store.health = 'rejecting'
  await world.run(3_000)
  store.health = 'up'
  node({ limit: 4, interval: '1m' }).start()
  await world.run(3_000)
  expect(log.lines.map((line) => line.replace(/ \(.*/, ''))).toEqual([
    'warn weir: the store is down, so policies use their failMode',
    'log weir: the store answers again',
    'debug weir: the number of processes changed',
  ])
})
