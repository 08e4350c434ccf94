import { expect, test } from 'vitest'
import { type EtcdTarget, etcdStore } from '../src/index.ts'

test.each([
  ['no target', undefined],
  ['null', null],
  ['a number', 2379],
  ['a text that is no URL', 'localhost'],
  ['another protocol', 'etcd://localhost:2379'],
  ['a path', 'http://localhost:2379/v3'],
  ['a password in an address', 'http://u:secret@localhost:2379'],
  ['an empty list', []],
  ['too many', Array.from({ length: 33 }, () => 'http://localhost:2379')],
  ['no endpoints', {}],
  ['a user without a password', { endpoints: 'http://localhost:2379', username: 'u' }],
  ['a password without a user', { endpoints: 'http://localhost:2379', password: 'secret' }],
  ['TLS without https', { endpoints: 'http://localhost:2379', tls: { ca: 'x' } }],
  ['a certificate without its key', { endpoints: 'https://localhost:2379', tls: { cert: 'x' } }],
])('%s is rejected, and no secret is told', (_, target) => {
  const rejected = expect(() => etcdStore(target as unknown as EtcdTarget))
  rejected.toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.not.stringContaining('secret') }))
})

test.each([{ namespace: '' }, { namespace: 'a/b' }, { namespace: 'a b' }, { timeout: 0 }, { timeout: Number.NaN }, { timeout: 61_000 }])(
  'the option %o is rejected',
  (options) => {
    expect(() => etcdStore('http://127.0.0.1:1', options)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  },
)

test.each([
  [{ endpoints: 'http://127.0.0.1:1', user: 'x' }, {}],
  [{ endpoints: 'https://127.0.0.1:1', tls: { rejectUnauthorized: false } }, {}],
  ['http://127.0.0.1:1', { prefix: 'x' }],
])('what is unknown in %o %o is rejected', (target, options) => {
  expect(() => etcdStore(target as EtcdTarget, options as object)).toThrow(expect.objectContaining({ code: 'WEIR_UNKNOWN_OPTION' }))
})

const HOST = 'http://127.0.0.1:1'
test.each([
  [() => etcdStore(HOST, { prefix: 'x' } as never), /Unknown option "prefix"\. Did you mean "namespace"\?/],
  [() => etcdStore({ hosts: HOST } as never), /Unknown option "hosts"\. Did you mean "endpoints"\?/],
  [() => etcdStore('http://u:secret@h:1'), /Option "endpoints" is a string that can't be used\. Use an address such as/],
  [
    () => etcdStore({ endpoints: HOST, password: 'secret' } as never),
    /Option "password" is a string .* Use "username" and "password" together\./,
  ],
  [
    () => etcdStore({ endpoints: HOST, tls: { key: 'secret' } } as never),
    /Option "tls" applies only to endpoints that begin with "https:"\. Change/,
  ],
  [() => etcdStore(HOST, { timeout: '5ms' }), /Option "timeout" is "5ms"\. Use .* from 10 ms/],
])('a message names what was given and the next step, and no password: %#', (make, message) => {
  expect(make).toThrow(message)
  expect(make).toThrow(/ See @weir\/core\/docs\/errors\/weir_\w+\.md$/)
  expect(make).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }))
})
