import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { TestNode } from '@weir/testing/store-tests/test-node'
import { mustRun } from '@weir/tooling/run'
import { expect, onTestFinished, test } from 'vitest'
import { postgresStore } from '../src/index.ts'

/** A server that rejects every connection with an error, in the format of PostgreSQL. */
async function rejecting(code: string, message: string): Promise<string> {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const length = Buffer.alloc(4)
  length.writeInt32BE(fields.length + 4)
  const server: Server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, fields])))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `postgres://app:s3cret@127.0.0.1:${typeof address === 'object' ? address?.port : ''}/app`
}

/** A TLS server with a self-signed certificate. */
async function selfSigned(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const [keyout, out] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  await mustRun('openssl', ['req', '-x509', ...curve, '-nodes', '-keyout', keyout, '-out', out, '-subj', '/CN=localhost'])
  const secure = { isServer: true, key: readFileSync(keyout), cert: readFileSync(out) }
  rmSync(folder, { recursive: true })
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write('S')
      new TLSSocket(socket, secure).on('error', () => {})
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `postgres://app:s3cret@127.0.0.1:${typeof address === 'object' ? address?.port : ''}/app`
}

test.each([
  ['a wrong password', '28P01', 'password authentication failed for user "app"', 'Check the user and the password in the URL'],
  ['a host that is not allowed', '28000', 'no pg_hba.conf entry for host "127.0.0.1"', 'pg_hba.conf, or check the "user"'],
  ['a database that does not exist', '3D000', 'database "app" does not exist', 'Create the database'],
  ['a role that may not', '42501', 'permission denied for schema weir', 'Run the statements of schemaSql()'],
])('%s is a warning that names the reason and the next step', async (_, code, message, step) => {
  const node = new TestNode(postgresStore(await rejecting(code, message), { timeout: 10_000 }))
  const failure = await node.failure(() => node.count('k', 1))
  expect(failure?.code).toBe('WEIR_STORE_UNAVAILABLE')
  expect(failure?.message).toContain(`(${message}). `)
  expect(failure?.message).toContain(step)
  expect(failure?.message).not.toContain('s3cret')
  expect(node.warnings).toContainEqual(failure)
  await node.close()
})

test('a certificate that is not trusted is a warning with the next step', async () => {
  const node = new TestNode(postgresStore(`${await selfSigned()}?sslmode=verify-full`, { timeout: 10_000 }))
  const failure = await node.failure(() => node.count('k', 1))
  expect(failure?.message).toContain('(self-signed certificate). Use the host name of its certificate')
  expect(node.warnings).toContainEqual(failure)
  await node.close()
})

test('a server that is shutting down is no mistake: the events report it', async () => {
  const node = new TestNode(postgresStore(await rejecting('57P03', 'the database system is shutting down'), { timeout: 10_000 }))
  const failure = await node.failure(() => node.count('k', 1))
  expect(failure?.message).toContain('PostgreSQL rejected a statement (the database system is shutting down). Weir tries again.')
  expect(node.warnings).not.toContainEqual(failure)
  await node.close()
})
