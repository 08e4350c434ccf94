import { describe, expect, it } from 'vitest'
import { UsageError } from '../src/errors.ts'
import { HelpAsked, parseOptions } from '../src/options.ts'

const parse = (line: string, env: NodeJS.ProcessEnv = {}): ReturnType<typeof parseOptions> =>
  parseOptions(line.split(' ').filter(Boolean), env)

describe('the arguments', () => {
  it('have defaults for the population and for a replay', () => {
    expect(parse('')).toMatchObject({
      duration: 30_000,
      limit: 60,
      interval: 2_000,
      cooldown: 0,
      log: undefined,
      json: false,
      store: 'auto',
    })
    expect(parse('--log x.gz')).toMatchObject({
      duration: undefined,
      limit: 60,
      interval: 60_000,
      window: 3_600_000,
      speed: 60,
      log: 'x.gz',
    })
  })

  it('have defaults of their own for a comparison, which needs Redis', () => {
    expect(parse('--compare')).toMatchObject({ compare: true, store: 'redis', limit: 1_000, interval: 20_000, duration: 20_000 })
    expect(parse('--compare --limit 7 --duration 3')).toMatchObject({ limit: 7, interval: 20_000, duration: 3_000 })
  })

  it('take times with their units and the duration in seconds', () => {
    expect(parse('--duration 2.5 --interval 500ms --cooldown 3s')).toMatchObject({ duration: 2_500, interval: 500, cooldown: 3_000 })
  })

  it.each([
    ['--compare --store ipc', /cannot be combined with --store ipc/],
    ['--compare --log x', /cannot be combined with --log/],
    ['--compare --kill-redis', /cannot be combined with --kill-redis/],
    ['--duration', /--duration <seconds>.*argument missing/],
    ['--duration 0', /'0' is invalid.*seconds from 1 to 86400/],
    ['--duration ten', /'ten' is invalid/],
    ['--limit 0', /whole number of at least 1/],
    ['--limit 1.5', /whole number of at least 1/],
    ['--limit NaN', /whole number of at least 1/],
    ['--spans 1', /whole number from 2 to 1000/],
    ['--spans 1000', /shorter than 5 ms/],
    ['--interval 60', /a time with its unit/],
    ['--interval 10ms', /at least 200 ms/],
    ['--log x --speed 1000', /lower --speed/],
    ['--log x --speed 0', /above 0/],
    ['--log x --window 0', /--window must be longer/],
    ['--log x --cooldown 1m', /--cooldown cannot be combined with --log/],
    ['--log x --kill-redis', /--kill-redis cannot be combined with --log/],
    ['--speed 2', /--speed needs --log/],
    ['--window 2h', /--window needs --log/],
    ['--store files', /Allowed choices are auto, redis, postgres, etcd, ipc/],
    ['--store ipc --kill-redis', /cannot be combined with --store ipc/],
    ['--store etcd --compare', /counts the commands of a Redis server, so it cannot be combined with --store etcd/],
    ['--frobnicate', /unknown option '--frobnicate'/],
    ['surplus', /too many arguments/],
  ])('%s is one clear line', (line, message) => {
    let error: unknown
    try {
      parse(line)
    } catch (caught) {
      error = caught
    }
    expect(error).toBeInstanceOf(UsageError)
    expect((error as UsageError).message).toMatch(message)
    expect((error as UsageError).message).not.toContain('\n')
  })

  it('never let the demo kill a Redis that is not its own', () => {
    expect(() => parse('--kill-redis', { REDIS_URL: 'redis://example' })).toThrow(/Unset REDIS_URL/)
  })

  it('--help says what there is', () => {
    let help = ''
    try {
      parse('--help')
    } catch (error) {
      if (error instanceof HelpAsked) help = error.message
    }
    for (const option of ['--duration', '--json', '--log', '--window', '--speed', '--limit', '--kill-redis', 'REDIS_URL'])
      expect(help).toContain(option)
  })
})
