import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

const GARBAGE = ['', 'nonsense', 'null', '7', '{}', '[null]', '[1e400,1,1]', '[-1,0,0]', '["a","b",1]', '[0,0,0,1.5,1,1,1]', '\u0000', '[]']
const bytes = (text: string): string => Buffer.from(text).toString('base64')

describeEtcd('values that can not be read', () => {
  const here = ownServer()

  test.each([
    ['window', POLICY],
    ['sliding', { ...POLICY, id: 'sliding', cells: 4 }],
    ['bucket', { ...POLICY, id: 'bucket', cells: 20, drain: 1 }],
  ])('count as nothing until their node writes anew, and harm no other key: %s', async (_, policy) => {
    const namespace = freshNamespace()
    const store = etcdStore(here.server.url, { namespace, timeout: PATIENT })
    const [a, b] = [new TestNode(store), new TestNode(store)]
    let taken = 1
    await a.count('k', taken, policy)
    await b.count('k', 1, policy)
    await a.block('k', 600_000)
    for (const value of GARBAGE) {
      for (const { name } of await here.server.keys(`${namespace}/1/`)) {
        if (/\/1\/[cbhnsrfa]\//.test(name)) await here.server.ask('/v3/kv/put', { key: bytes(name), value: bytes(value) })
      }
      taken++
      expect(await a.count('another', taken, policy)).toBe(taken)
      expect(await b.count('k', taken, policy), JSON.stringify(value)).toBeGreaterThanOrEqual(taken)
      expect(await a.count('k', taken, policy)).toBe(2 * taken)
      expect((await a.beat()).nodes).toBeGreaterThanOrEqual(1)
    }
    const codes = new Set([...a.warnings, ...b.warnings].map(({ code }) => code))
    expect([...codes]).toEqual(['WEIR_WARN_STORE_VALUE'])
    for (const { message } of [...a.warnings, ...b.warnings]) {
      expect(message).toContain(`Ignored a value in etcd that Weir can't read: ${namespace}/1/`)
      expect(message).toMatch(/Does another program write to these keys\?.* See \S+weir_warn_store_value\.md$/)
    }
    expect(a.warnings.length).toBeLessThan(20)
    await Promise.all([a.close(), b.close()])
  })
})
