import fc from 'fast-check'
import { Command, Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { expect, onTestFinished, test } from 'vitest'
import { callsOver } from '../src/ioredis/call.ts'
import { type Script, script } from '../src/scripts/script.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()
const SIX = Redis
const FIVE = Redis5 as unknown as typeof Redis

function connected(Client: typeof Redis = SIX): Redis {
  const client = new Client(here.server.port, { maxRetriesPerRequest: 0, retryStrategy: () => null })
  onTestFinished(() => client.disconnect())
  return client
}

test('a call is sent as ioredis would send it', () => {
  const client = new Redis({ lazyConnect: true })
  const { sha } = script('return 1')
  let sent = new Command('')
  client.sendCommand = (command) => {
    sent = command
  }
  const call = callsOver(client)
  call(script('return 1'), 0, [])
  const first = sent
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }))
  fc.assert(
    fc.property(fc.array(text), fc.nat({ max: 12 }), (rest, keys) => {
      call({ source: '', sha }, keys, rest)
      // Ours is not made by ioredis, but one of its commands all the same.
      expect(sent).toBeInstanceOf(Command)
      expect(Object.getPrototypeOf(sent)).not.toBe(Object.getPrototypeOf(first))
      const args = [sha, String(keys), ...rest]
      expect(Buffer.from(sent.toWritable({}))).toEqual(Buffer.from(new Command('evalsha', args).toWritable({})))
      expect([sent.name, sent.args]).toEqual(['evalsha', args])
    }),
    { numRuns: 50 },
  )
})

test.each([
  ['ioredis 6', SIX],
  ['ioredis 5', FIVE],
] as const)('replies are what ioredis makes of them: %s', async (_, Client) => {
  const client = connected(Client)
  const call = callsOver(client)
  const sources = [
    'return 7',
    'return ARGV[1]',
    `return { 1, ARGV[1], { 'a', false, KEYS[1] } }`,
    'return false',
    `return redis.status_reply('FINE')`,
    `return redis.error_reply('MINE no')`,
    `return redis.call('SET', KEYS[1], ARGV[1])`,
    `return redis.call('LPUSH', KEYS[1], 'x')`,
  ]
  for (const source of sources) await client.script('LOAD', source)
  const keyAndText = ['ключ', 'ü\u{1f40c}\r\n']
  await call(script('return 7'), 0, [])
  for (const one of sources.map((source): Script => script(source))) {
    const [ours, theirs] = await Promise.allSettled([call(one, 1, keyAndText), client.evalsha(one.sha, 1, ...keyAndText)])
    expect(ours).toEqual(theirs)
  }
  await expect(call(script('return "not loaded"'), 0, [])).rejects.toThrow(/^NOSCRIPT/)
})

test('another client is called by its own method', async () => {
  const told: unknown[] = []
  const call = callsOver({ evalsha: async (...args) => told.push(args) })
  await call({ source: '', sha: 'x' }, 1, ['k', 'a'])
  expect(told).toEqual([['x', 1, 'k', 'a']])
})

test('a call that is under way as the connection ends is rejected, and so is one after it', async () => {
  const client = connected()
  await client.script('LOAD', 'return 1')
  const call = callsOver(client)
  await call(script('return 1'), 0, [])
  const underWay = call(script('return 1'), 0, [])
  client.stream.destroy()
  await expect(underWay).rejects.toThrow(/closed/i)
  await expect(call(script('return 1'), 0, [])).rejects.toThrow(/closed/i)
})

test('who traces commands by putting others in the place of their ends hears of both', async () => {
  const client = connected()
  await client.script('LOAD', 'return ARGV[1]')
  const heard: unknown[] = []
  const { sendCommand } = client
  client.sendCommand = (command, ...more) => {
    const { resolve, reject } = command
    command.resolve = (reply: unknown) => {
      heard.push(String(reply))
      resolve(reply)
    }
    command.reject = (error) => {
      heard.push(error.message)
      reject(error)
    }
    return sendCommand.call(client, command, ...more)
  }
  const call = callsOver(client)
  for (const text of ['x', 'y']) expect(await call(script('return ARGV[1]'), 0, [text])).toBe(text)
  await expect(call(script('return "?"'), 0, [])).rejects.toThrow('NOSCRIPT')
  expect(heard).toEqual(['x', 'y', expect.stringContaining('NOSCRIPT')])
})
