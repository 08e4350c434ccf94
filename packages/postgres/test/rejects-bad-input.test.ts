import pg from 'pg'
import { expect, test } from 'vitest'
import { postgresStore, schemaSql } from '../src/index.ts'

const URL = 'postgres://app:topsecret@localhost/app'

test.each([
  ['the first argument', () => postgresStore('localhost:5432')],
  ['the first argument', () => postgresStore('mysql://localhost')],
  ['the first argument', () => postgresStore(undefined as never)],
  ['the first argument', () => postgresStore([] as never)],
  ['the first argument', () => postgresStore(new pg.Client(URL) as never)],
  ['schema', () => postgresStore(URL, { schema: 'Weir' })],
  ['schema', () => postgresStore(URL, { schema: 'a;b' })],
  ['schema', () => postgresStore(URL, { schema: 'x'.repeat(51) })],
  ['schema', () => schemaSql({ schema: '"' })],
  ['role', () => schemaSql({ role: '' })],
  ['timeout', () => postgresStore(URL, { timeout: 9 })],
  ['unlogged', () => postgresStore(URL, { unlogged: 'no' as never })],
  ['publish', () => postgresStore(URL, { publish: 1 as never })],
  ['create', () => postgresStore(URL, { create: null as never })],
  ['postgresStore', () => postgresStore(URL, 5 as never)],
])('%s that can not be used is named, and no password is', (option, make) => {
  expect(make).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining(option) }))
  expect(make).toThrow(expect.objectContaining({ message: expect.not.stringContaining('topsecret') }))
})

test.each([
  [() => postgresStore(URL, { tableName: 'x' } as never), /Unknown option "tableName"\. Did you mean "schema"\?/],
  [() => schemaSql({ tableName: 'x' } as never), /Unknown option "tableName"\. Did you mean "schema"\?/],
  [() => postgresStore('mysql://u:topsecret@h'), /postgresStore\(\): the first argument is a string .*Use a URL like postgres:/],
  [() => postgresStore(URL, { timeout: '5ms' }), /Option "timeout" is "5ms"\. Use .* from 10 ms/],
])('a message names what was given and the next step, and no password: %#', (make, message) => {
  expect(make).toThrow(message)
  expect(make).toThrow(/ See @weir\/core\/docs\/errors\/weir_\w+\.md$/)
  expect(make).toThrow(expect.objectContaining({ message: expect.not.stringContaining('topsecret') }))
})

test('an unknown option is named', () => {
  expect(() => postgresStore(URL, { namespace: 'x' } as never)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION' }))
})

test.each(['url', 'pool', 'client', 'storeClient', 'schema', 'timeout'])(
  '%s among the settings is rejected, as pg would ignore it',
  (name) => {
    const message = expect.stringContaining(`ption "${name}"`)
    const settings = { host: 'db', [name]: 'topsecret' }
    expect(() => postgresStore(settings)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION', message }))
    expect(() => postgresStore(settings)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('topsecret') }))
  },
)

test('a URL, settings and a pool of the same server are one address, and a pool is not used', async () => {
  const pool = new pg.Pool({ host: 'localhost', database: 'app', password: 'topsecret' })
  const addresses = [URL, { host: 'localhost', database: 'app' }, pool].map((target) => postgresStore(target).address)
  expect(new Set(addresses)).toEqual(new Set(['localhost:5432/app weir']))
  expect(pool.totalCount).toBe(0)
  await pool.end()
})

test('the name of a role is quoted', () => {
  expect(schemaSql({ role: 'a"; DROP TABLE x; --' })).toContain('TO "a""; DROP TABLE x; --";')
})
