import { describe, expect, it } from 'vitest'
import { UsageError } from '../src/errors.ts'
import { chooseStore } from '../src/store/choose.ts'

const choose = (store: 'auto' | 'redis' | 'postgres' | 'etcd' | 'ipc', env: NodeJS.ProcessEnv) =>
  chooseStore({ store, killRedis: false }, env)
/** An environment in which no server is installed. */
const BARE = { PATH: '', REDIS_SERVER: '/nowhere/redis-server', POSTGRES_BIN: '/nowhere', ETCD_SERVER: '/nowhere/etcd' }

describe('the store of the demo', () => {
  it('is its own process where nothing is installed', () => {
    expect(choose('auto', BARE)).toEqual({ kind: 'ipc', origin: 'parent' })
  })

  it.each([
    ['redis', 'REDIS_URL', 'rediss://h:1'],
    ['postgres', 'POSTGRES_URL', 'postgresql://u@h/d'],
    ['etcd', 'ETCD_URL', 'https://h:2379'],
  ] as const)('is a %s that %s names', (kind, variable, url) => {
    expect(choose(kind, { ...BARE, [variable]: url })).toEqual({ kind, origin: variable, url })
    expect(() => choose(kind, { ...BARE, [variable]: 'h:1' })).toThrow(new RegExp(`^${variable} must begin with `))
  })

  it.each(['redis', 'postgres', 'etcd'] as const)('says what it takes where %s is asked for and missing', (kind) => {
    expect(() => choose(kind, BARE)).toThrow(UsageError)
    expect(() => choose(kind, BARE)).toThrow(new RegExp(`^--store ${kind} needs .*\\. Install it, set .* or set [A-Z]+_URL$`))
  })

  it('is not what was not asked for', () => {
    expect(choose('auto', { ...BARE, POSTGRES_URL: 'postgres://h', ETCD_URL: 'http://h' })).toEqual({ kind: 'ipc', origin: 'parent' })
  })
})
