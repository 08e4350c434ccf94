import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { POLICY, TestNode } from '@weir/testing/store-tests/test-node'
import { EtcdServer } from '@weir/tooling/etcd-servers'
import { mustRun } from '@weir/tooling/run'
import { expect, test } from 'vitest'
import { etcdStore } from '../src/index.ts'
import { describeEtcd, freshNamespace, PATIENT } from './fixtures.ts'

const bytes = (text: string): string => Buffer.from(text).toString('base64')

/** The role that the guide shows, for another namespace. */
async function addUsers(server: EtcdServer, namespace: string): Promise<void> {
  const text = readFileSync(new URL('../../../docs/guides/etcd.md', import.meta.url), 'utf8')
  expect(text).toContain('etcdctl role grant-permission weir readwrite --prefix weir/')
  await server.ask('/v3/auth/role/add', { name: 'root' })
  await server.ask('/v3/auth/user/add', { name: 'root', password: 'admin' })
  await server.ask('/v3/auth/user/grant', { user: 'root', role: 'root' })
  await server.ask('/v3/auth/role/add', { name: 'weir' })
  const perm = { permType: 'READWRITE', key: bytes(`${namespace}/`), range_end: bytes(`${namespace}0`) }
  await server.ask('/v3/auth/role/grant', { name: 'weir', perm })
  await server.ask('/v3/auth/user/add', { name: 'weir', password: 'secret' })
  await server.ask('/v3/auth/user/grant', { user: 'weir', role: 'weir' })
  await server.ask('/v3/auth/enable', {})
}

describeEtcd('an etcd with users', () => {
  test('the permissions in the guide suffice, a lost token is asked for anew, and a wrong password is told', async () => {
    const server = await EtcdServer.start()
    const namespace = freshNamespace()
    await addUsers(server, namespace)
    const at = (password: string) => etcdStore({ endpoints: server.url, username: 'weir', password }, { namespace, timeout: PATIENT })
    const [a, b] = [new TestNode(at('secret')), new TestNode(at('secret'))]
    expect(await a.count('k', 5)).toBe(5)
    expect((await a.beat(undefined)).nodes).toBe(1)
    expect(await a.block('blocked', 60_000)).toBeGreaterThan(0)
    let asked = 0
    await b.eventually(async () => {
      await a.count(`k${++asked}`, 1, { ...POLICY, id: 'limited', limit: 1 })
      return b.announcements.length > 0 ? true : undefined
    })
    // etcd keeps simple tokens only in memory, so a restart makes them invalid.
    await server.kill()
    await server.start()
    expect(await a.eventually(() => a.count('k', 6).catch(() => undefined))).toBe(6)
    const denied = new TestNode(at('wrong'))
    const failure = await denied.failure(() => denied.count('k', 1))
    expect(failure).toMatchObject({ code: 'WEIR_STORE_UNAVAILABLE', message: expect.stringContaining('authentication failed') })
    expect(failure?.message).toContain('Check the options "username" and "password" of etcdStore.')
    expect(failure?.message).not.toContain('wrong')
    const nobody = new TestNode(etcdStore(server.url, { namespace, timeout: PATIENT }))
    const unnamed = await nobody.failure(() => nobody.count('k', 1))
    expect(unnamed?.message).toMatch(/user name is empty.*Add "username" and "password" beside "endpoints"/)
    const elsewhere = new TestNode(
      etcdStore({ endpoints: server.url, username: 'weir', password: 'secret' }, { namespace: freshNamespace(), timeout: PATIENT }),
    )
    const unpermitted = await elsewhere.failure(() => elsewhere.count('k', 1))
    expect(unpermitted?.message).toMatch(/permission denied.*"Permissions" in the README of @weir\/etcd/)
    expect([denied, nobody, elsewhere].map(({ warnings }) => warnings)).toEqual([[failure], [unnamed], [unpermitted]])
    expect([...a.warnings, ...b.warnings]).toEqual([])
    await Promise.all([a, b, denied, nobody, elsewhere].map((node) => node.close()))
    await server.stop()
  })
})

describeEtcd('an etcd with TLS', () => {
  test('is trusted by its own authority only', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'weir-etcd-tls-'))
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2', '-nodes']
    await mustRun('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject])
    const server = await EtcdServer.start({ tls: { cert, key } })
    const namespace = freshNamespace()
    const a = new TestNode(etcdStore({ endpoints: server.url, tls: { ca: readFileSync(cert) } }, { namespace, timeout: PATIENT }))
    expect(await a.eventually(() => a.count('k', 5).catch(() => undefined))).toBe(5)
    const b = new TestNode(etcdStore(server.url, { namespace, timeout: PATIENT }))
    expect(await b.failure(() => b.count('k', 1))).toMatchObject({
      code: 'WEIR_STORE_UNAVAILABLE',
      message: expect.stringContaining('certificate'),
    })
    await Promise.all([a.close(), b.close()])
    await server.stop()
    rmSync(directory, { recursive: true, force: true })
  })
})
