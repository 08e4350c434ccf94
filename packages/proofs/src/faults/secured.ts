import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, RedisServer } from '@weir/tooling/redis-servers'
import { startCluster } from '@weir/tooling/redis-topologies'
import type { Stage } from './servers.ts'

const execute = promisify(execFile)
const GUIDE = new URL('../../../../docs/guides/redis.md', import.meta.url)

/** The permissions that the documentation of the Redis store gives, as arguments of `ACL SETUSER`. */
export function documentedPermissions(namespace: string, cluster = false): string[] {
  const text = readFileSync(GUIDE, 'utf8')
  const rule = /ACL SETUSER weir on >secret ([^`]+)```/.exec(text)?.[1]
  const more = /In a Cluster add `([^`]+)`/.exec(text)?.[1]
  if (rule === undefined || more === undefined) throw new Error('docs/guides/redis.md contains no permissions.')
  return `${rule} ${cluster ? more : ''}`
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/^([~&])weir:/, `$1${namespace}`))
}

interface Certificate {
  readonly ca: string
  readonly arguments: readonly string[]
  remove(): void
}

async function makeCertificate(): Promise<Certificate> {
  const directory = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const key = join(directory, 'key.pem')
  const cert = join(directory, 'cert.pem')
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2', '-nodes']
  await execute('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject])
  return {
    ca: readFileSync(cert, 'utf8'),
    arguments: ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert, '--tls-auth-clients', 'no'],
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}

const ADMIN = { password: 'admin' }

async function addUser(server: RedisServer, cluster = false): Promise<void> {
  await server.command('acl', 'setuser', 'weir', 'on', '>secret', ...documentedPermissions('*', cluster))
}

/** A server with TLS, and a user who has exactly the documented permissions. */
export async function startSecured(): Promise<Stage> {
  const certificate = await makeCertificate()
  const port = await freePort()
  const server = await RedisServer.start({
    arguments: ['--tls-port', String(port), ...certificate.arguments, '--requirepass', 'admin'],
    admin: ADMIN,
  })
  await addUser(server)
  return {
    target: { port, host: 'localhost', username: 'weir', password: 'secret', tls: { ca: certificate.ca } },
    servers: [server],
    stop: async () => {
      await server.stop()
      certificate.remove()
    },
  }
}

/** The same for a Cluster. */
export async function startSecuredCluster(): Promise<Stage> {
  const certificate = await makeCertificate()
  const setup = await startCluster(2_000, async () => {
    const port = await freePort()
    // All servers use one port for clients and each other, because a Cluster announces only the port on which its servers meet.
    const tls = ['--port', '0', '--tls-port', String(port), '--tls-cluster', 'yes', '--tls-replication', 'yes', ...certificate.arguments]
    const passwords = ['--requirepass', 'admin', '--masterauth', 'admin']
    return {
      port,
      arguments: [...tls, ...passwords],
      admin: { tls: { ca: certificate.ca, checkServerIdentity: () => undefined }, ...ADMIN },
    }
  })
  await Promise.all(setup.servers.map((server) => addUser(server, true)))
  const redisOptions = { username: 'weir', password: 'secret', tls: { ca: certificate.ca } }
  return {
    target: { cluster: setup.servers.map(({ port }) => ({ host: '127.0.0.1', port })), options: { redisOptions } },
    servers: setup.servers,
    stop: async () => {
      await setup.stop()
      certificate.remove()
    },
  }
}
