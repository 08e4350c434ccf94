import { fixedWindow } from '@weir/core'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, ownServer, PATIENT } from './fixtures.ts'

const HOUR = 3_600_000

function decidedPolicy(id: string, limit: number) {
  const { step } = fixedWindow()
  if (step === undefined) throw new Error('A fixed window has a step.')
  return { id, step, parameters: step.parameters({ name: id, id, limit, interval: HOUR } as Parameters<typeof step.parameters>[0]) }
}

describeEtcd('decisions at etcd', () => {
  const here = ownServer()

  test('nodes that compete for one key get the limit exactly, and every request an answer', async () => {
    const namespace = freshNamespace()
    const nodes = Array.from({ length: 4 }, () => new TestNode(etcdStore(here.server.url, { namespace, timeout: PATIENT })))
    const policy = decidedPolicy('contended', 50)
    const verdicts = await Promise.all(nodes.flatMap((node) => Array.from({ length: 40 }, () => node.take(policy, 'k', 1, 50))))
    expect(verdicts.filter((verdict) => verdict?.allowed === true)).toHaveLength(50)
    expect(verdicts.filter((verdict) => verdict?.allowed === false)).toHaveLength(110)
    await Promise.all(nodes.map((node) => node.close()))
  })

  test('a state that can not be read is answered by nobody, and left alone', async () => {
    const namespace = freshNamespace()
    const node = new TestNode(etcdStore(here.server.url, { namespace, timeout: PATIENT }))
    const policy = decidedPolicy('unreadable', 50)
    const bytes = (text: string): string => Buffer.from(text).toString('base64')
    const name = `${namespace}/1/d/unreadable/k`
    for (const value of ['nonsense', '[]', '[1,["x"],[]]', '[1e400,[1],[]]', '[1,[1],[[1]]]', '{"0":1}']) {
      await here.server.ask('/v3/kv/put', { key: bytes(name), value: bytes(value) })
      expect(await node.take(policy, 'k', 1, 50)).toBeUndefined()
      expect(await node.take(policy, 'another', 1, 50)).toMatchObject({ allowed: true })
    }
    await here.server.ask('/v3/kv/deleterange', { key: bytes(name) })
    expect(await node.eventually(() => node.take(policy, 'k', 1, 50))).toMatchObject({ allowed: true, remaining: 49 })
    await node.close()
  })

  test('while etcd hangs requests are rejected an answer in time, however many wait', async () => {
    const node = new TestNode(etcdStore(here.server.url, { namespace: freshNamespace(), timeout: 200 }))
    const policy = decidedPolicy('hanging', 50)
    expect(await node.take(policy, 'k', 1, 50)).toMatchObject({ remaining: 49 })
    await here.server.pause()
    const outcomes = await Promise.allSettled(Array.from({ length: 1_000 }, () => node.take(policy, 'k', 1, 50)))
    here.server.resume()
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: expect.stringMatching(/^WEIR_STORE_(TIMEOUT|UNAVAILABLE)$/) } })
    }
    const later = await node.eventually(() => node.take(policy, 'k', 0, 50).catch(() => undefined))
    expect(later.remaining).toBeGreaterThanOrEqual(0)
    await node.close()
  })
})
