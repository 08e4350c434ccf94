import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ATTACKS } from '../../src/attack/attacks/index.ts'
import { spell } from '../../src/attack/attacks/spelling-generated.ts'
import { ADAPTERS } from '../../src/attack/harness/given.ts'
import { mutated, mutatedBytes, pathsOf, replaced } from '../../src/attack/harness/mutate.ts'
import { Random } from '../../src/attack/harness/random.ts'
import { jobsOf } from '../../src/attack/harness/run.ts'
import { shown, tableOf } from '../../src/attack/harness/table.ts'
import { parseReply, requestText, Wire } from '../../src/attack/harness/wire.ts'

describe('the attacker', () => {
  it('knows every attack that has a file', () => {
    const folders = ['attacks', 'fuzz'].map((folder) => fileURLToPath(new URL(`../../src/attack/${folder}`, import.meta.url)))
    const files = folders.flatMap((folder) => readdirSync(folder)).filter((file) => file !== 'index.ts')
    expect(folders.every((folder) => existsSync(folder))).toBe(true)
    // The file `dashboard.ts` contains two attacks.
    expect(ATTACKS).toHaveLength(files.length + 1)
    expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length)
  })

  it('attacks each adapter and major with each store, in the short form no others', () => {
    const jobs = jobsOf(ATTACKS, false)
    for (const adapter of ADAPTERS) expect(jobs.filter(({ target }) => target === adapter).length).toBeGreaterThan(10)
    expect(new Set(jobs.map(({ store }) => store))).toEqual(new Set(['none', 'memory', 'redis']))
    const named = new Set(jobs.map(({ attack, target, store }) => `${attack.name} ${target} ${store}`))
    for (const { attack, target, store } of jobsOf(ATTACKS, true)) expect(named).toContain(`${attack.name} ${target} ${store}`)
  })

  it('does the same again with the same seed', () => {
    const run = (): unknown => {
      const random = new Random(7)
      const value = { a: [1, 'two', { three: 3 }], b: null }
      return [spell(random, '/login'), mutated(random, value, [0, 'x']), mutatedBytes(random, Buffer.from('hello')).toString('hex')]
    }
    expect(run()).toEqual(run())
  })

  it('replaces each part of a value, and leaves the value as it was', () => {
    const value = { a: [1, { b: 2 }] }
    const all = pathsOf(value).map((path) => replaced(value, path, 'x'))
    expect(all).toEqual(['x', { a: 'x' }, { a: ['x', { b: 2 }] }, { a: [1, 'x'] }, { a: [1, { b: 'x' }] }])
    expect(value).toEqual({ a: [1, { b: 2 }] })
  })

  it('never puts a space or the end of a line into a spelling', () => {
    const random = new Random(1)
    for (let i = 0; i < 2_000; i++) expect(spell(random, '/a,b@c')).not.toMatch(/[ \r\n]/)
  })

  it('reads replies that come in parts, and takes a closed connection for no answer', async () => {
    expect(parseReply(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no'))).toBeUndefined()
    const replies = ['HTTP/1.1 429 x\r\nContent-Length: 2\r\nX-A: b\r\n\r\nno', 'HTTP/1.1 204 x\r\n\r\n', undefined]
    const server = createServer((socket) => {
      socket.on('data', () => {
        const reply = replies.shift()
        if (reply === undefined) socket.destroy()
        else for (const part of reply.match(/[\s\S]{1,20}/g) ?? []) socket.write(part)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const wire = new Wire((server.address() as AddressInfo).port)
    expect(await wire.send(requestText('GET', '/'))).toEqual({ status: 429, headers: { 'content-length': '2', 'x-a': 'b' }, body: 'no' })
    expect((await wire.send(requestText('GET', '/'))).status).toBe(204)
    expect((await wire.send(requestText('GET', '/'))).status).toBe(0)
    wire.close()
    server.close()
  })

  it('shows nothing raw, and every try that got through', () => {
    expect(shown('a\n\u001b[31m')).toBe('a\\n\\u001b[31m')
    const [job] = jobsOf(ATTACKS, true) as [ReturnType<typeof jobsOf>[number]]
    const results = ['one', 'two', 'three'].map((tried, i) => ({ tried, held: i > 0, figure: `${i}` }))
    const table = tableOf([{ job, results }], false)
    expect(table).toContain('GOT THROUGH')
    expect(table).toContain('one')
    expect(table).toContain('2 ways')
    expect(tableOf([{ job, results }], true)).toContain('three')
  })
})
