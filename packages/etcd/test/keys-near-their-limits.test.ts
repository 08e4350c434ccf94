import { once } from 'node:events'
import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { EtcdServer } from '@weir/tooling/etcd-servers'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace } from './fixtures.ts'

const FIXED = { ...POLICY, limit: 10, hot: 5 }
const SLIDING = { ...FIXED, id: 'sliding', cells: 4 }
const BUCKET = { ...FIXED, id: 'bucket', cells: 100, drain: 1 / 100 }

/** Keys that a request writes, as text. */
function written(body: string): readonly string[] {
  const { success = [] } = JSON.parse(body || '{}') as { success?: readonly { request_put?: { key: string } }[] }
  return success.flatMap(({ request_put: put }) => (put === undefined ? [] : [Buffer.from(put.key, 'base64').toString()]))
}

describeEtcd('a process that starts receives the keys near their limits', () => {
  let etcd: EtcdServer
  let proxy: Server
  /** Returns the fault for a request that writes these keys, undefined if it passes. */
  let fault: (keys: readonly string[]) => 'rejected' | 'reply lost' | undefined
  let faults = 0

  beforeAll(async () => {
    etcd = await EtcdServer.start()
    const { hostname, port } = new URL(etcd.url)
    proxy = createServer((incoming, outgoing) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => {
        const body = Buffer.concat(chunks)
        const kind = incoming.url === '/v3/kv/txn' ? fault(written(body.toString())) : undefined
        if (kind !== undefined) faults++
        if (kind === 'rejected') return outgoing.destroy()
        const { method, url: path } = incoming
        const upstream = httpRequest({ hostname, port, method, path, headers: incoming.headers }, (answer) => {
          if (kind === 'reply lost') {
            answer.resume()
            answer.on('end', () => outgoing.destroy())
            return
          }
          // A request that fails on a connection in use for longer would be sent again.
          outgoing.writeHead(answer.statusCode ?? 500, { ...answer.headers, connection: 'close' })
          answer.pipe(outgoing)
        })
        upstream.on('error', () => outgoing.destroy())
        outgoing.on('close', () => upstream.destroy())
        return upstream.end(body)
      })
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
  })
  afterAll(async () => {
    proxy?.closeAllConnections()
    proxy?.close()
    await etcd?.stop()
  })
  beforeEach(() => {
    fault = () => undefined
    faults = 0
  })

  const isOf = (letter: string) => (keys: readonly string[]) => keys.some((key) => key.includes(`/1/${letter}/`))
  const through = (namespace: string) =>
    new TestNode(etcdStore(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, { namespace, timeout: 5_000 }))

  /** The keys that a process receives with its first heartbeat. */
  async function heardAtStart(namespace: string): Promise<readonly string[]> {
    const node = new TestNode(etcdStore(etcd.url, { namespace }))
    const { heartbeat } = await node.connection.sync({
      entries: [],
      blocks: [],
      heartbeat: { ttl: 10_000, cursor: undefined, policies: [FIXED, SLIDING, BUCKET] },
    })
    await node.close()
    return heartbeat?.hot.map(({ policyId, key }) => `${policyId} ${key}`) ?? []
  }

  test.each([
    ['fixed', FIXED],
    ['sliding', SLIDING],
    ['bucket', BUCKET],
  ] as const)('when the reply to the write was lost (%s)', async (id, policy) => {
    const namespace = freshNamespace()
    const node = through(namespace)
    await node.count('k', 1, policy)
    expect(await heardAtStart(namespace)).toEqual([])
    fault = (keys) => (isOf('c')(keys) ? 'reply lost' : undefined)
    expect(await node.failure(() => node.count('k', 10, policy))).toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE' })
    expect(faults).toBe(1)
    fault = () => undefined
    await node.count('k', 10, policy)
    await node.close()
    expect(await heardAtStart(namespace)).toEqual([`${id} k`])
  })

  test('when the first write of the mark failed: it is written with the next heartbeat', async () => {
    const namespace = freshNamespace()
    const node = through(namespace)
    fault = (keys) => (isOf('h')(keys) ? 'rejected' : undefined)
    await node.count('k', 10, FIXED)
    await expect.poll(() => faults).toBe(1)
    fault = () => undefined
    await node.beat()
    await expect.poll(() => heardAtStart(namespace)).toEqual(['fixed k'])
    await node.close()
  })

  test.each([1, 2])('when its first %i writes failed and the process closes', async (failures) => {
    const namespace = freshNamespace()
    const node = through(namespace)
    fault = (keys) => (isOf('h')(keys) && faults < failures ? 'rejected' : undefined)
    await node.count('k', 10, FIXED)
    await node.close()
    expect(faults).toBe(failures)
    expect(await heardAtStart(namespace)).toEqual(['fixed k'])
  })

  test('and closing ends while marks can not be written', async () => {
    const node = through(freshNamespace())
    fault = (keys) => (isOf('h')(keys) ? 'rejected' : undefined)
    await node.count('k', 10, FIXED)
    await node.close()
    expect(faults).toBe(3)
  })

  test.each([
    ['fixed', FIXED],
    ['sliding', SLIDING],
    ['bucket', BUCKET],
  ] as const)('when etcd has lost all keys, as soon as one that counted them syncs again (%s)', async (id, policy) => {
    const namespace = freshNamespace()
    const node = through(namespace)
    await node.count('k', 10, policy)
    await expect.poll(() => heardAtStart(namespace)).toEqual([`${id} k`])
    await etcd.ask('/v3/kv/deleterange', {
      key: Buffer.from(namespace).toString('base64'),
      range_end: Buffer.from(`${namespace}~`).toString('base64'),
    })
    expect(await heardAtStart(namespace)).toEqual([])
    await node.count('k', 10, policy)
    await node.close()
    expect(await heardAtStart(namespace)).toEqual([`${id} k`])
  })
})
