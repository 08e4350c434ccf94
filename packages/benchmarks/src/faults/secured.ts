import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort, RedisServer } from '@weir/tooling/redis-servers'
import type { Stage } from './servers.ts'

const execute = promisify(execFile)
const README = new URL('../../../redis/README.md', import.meta.url)

/** The permissions that the documentation of the Redis store gives, as `ACL SETUSER` takes them. */
export function documentedPermissions(namespace: string): string[] {
  const text = readFileSync(README, 'utf8')
  const rule = /ACL SETUSER weir on >secret ([^`]+)```/.exec(text)?.[1]
  if (rule === undefined) throw new Error('The README of @weir/redis names no permissions any more.')
  return rule
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/^([~&])weir:/, `$1${namespace}`))
}

/** A server that speaks TLS only, and knows a user who may do what the documentation says and nothing else. */
export async function startSecured(): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const key = join(directory, 'key.pem')
  const cert = join(directory, 'cert.pem')
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2', '-nodes']
  await execute('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-keyout', key, '-out', cert, ...subject])
  const port = await freePort()
  const tls = ['--tls-port', String(port), '--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert]
  const server = await RedisServer.start({
    arguments: [...tls, '--tls-auth-clients', 'no', '--requirepass', 'admin'],
    cli: ['-a', 'admin', '--no-auth-warning'],
  })
  await server.cli('acl', 'setuser', 'weir', 'on', '>secret', ...documentedPermissions('*'))
  return {
    target: { port, host: 'localhost', username: 'weir', password: 'secret', tls: { ca: readFileSync(cert, 'utf8') } },
    servers: [server],
    primary: async () => server,
    stop: async () => {
      await server.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
