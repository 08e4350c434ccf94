import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, faultProxy } from '../src/index.ts'

let server: Server
let received: string[]
let proxy: FaultProxy
const sockets: Socket[] = []

/** Answers each line with itself in angle brackets. */
beforeEach(async () => {
  received = []
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => {
      received.push(String(data))
      socket.write(`<${String(data).trim()}>`)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy = await faultProxy({ port: (server.address() as AddressInfo).port })
})

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await proxy.close()
  server.close()
})

interface Client {
  readonly socket: Socket
  readonly text: () => string
  readonly ended: () => string | undefined
}

async function client(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1')
  sockets.push(socket)
  let text = ''
  let ended: string | undefined
  socket.on('data', (data) => {
    text += String(data)
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    ended ??= error.code
  })
  socket.on('end', () => {
    ended ??= 'end'
  })
  socket.on('close', () => {
    ended ??= 'close'
  })
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  return { socket, text: () => text, ended: () => ended }
}

async function until(condition: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 10_000; !condition(); ) {
    if (Date.now() > deadline) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

describe('a fault proxy', () => {
  test('passes everything on while there is no fault, the end of a connection too', async () => {
    const { socket, text, ended } = await client()
    socket.write('a')
    await until(() => text() === '<a>')
    expect(proxy.connections).toBe(1)
    socket.end()
    await until(() => ended() !== undefined)
    expect(ended()).toBe('end')
    await until(() => proxy.connections === 0)
  })

  test('holds replies back, in their order', async () => {
    const { socket, text } = await client()
    proxy.set({ latency: 150 })
    const begun = performance.now()
    socket.write('a')
    await until(() => received.length === 1)
    proxy.set({ latency: 0 })
    socket.write('b')
    await until(() => text().length === 6)
    expect(text()).toBe('<a><b>')
    expect(performance.now() - begun).toBeGreaterThan(145)
  })

  test('loses replies although the server did what was asked', async () => {
    const { socket, text } = await client()
    proxy.set({ loseReplies: true })
    socket.write('a')
    await until(() => proxy.lostBytes === 3)
    expect(received).toEqual(['a'])
    proxy.heal()
    socket.write('b')
    await until(() => text() !== '')
    expect(text()).toBe('<b>')
  })

  test('resets a connection in the middle of a reply', async () => {
    const { socket, text, ended } = await client()
    proxy.set({ resetAfterBytes: 4 })
    socket.write('abcdef')
    await until(() => ended() !== undefined)
    // If the last bytes and the reset are read in one turn, Node.js reports an end.
    expect(ended()).toMatch(/^(ECONNRESET|end)$/)
    expect(text()).toBe('<abc')
    expect(proxy.lostBytes).toBe(4)
  })

  test('keeps a connection half open: the server is gone, and the client is not told', async () => {
    const { socket, text, ended } = await client()
    socket.write('a')
    await until(() => text() === '<a>')
    proxy.set({ halfOpen: true })
    socket.write('b')
    const closed = new Promise((resolve) => server.once('connection', (other) => resolve(other)))
    const second = await client()
    second.socket.write('c')
    await closed
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect([text(), second.text(), ended(), second.ended()]).toEqual(['<a>', '', undefined, undefined])
    expect(received).toEqual(['a'])
    proxy.heal()
    await until(() => ended() !== undefined && second.ended() !== undefined)
  })

  test('sends requests again, late, on another connection', async () => {
    proxy.set({ duplicate: 50 })
    const { socket, text } = await client()
    socket.write('a')
    await until(() => received.length === 2 && text() !== '')
    expect(received).toEqual(['a', 'a'])
    expect(text()).toBe('<a>')
  })

  test('rejects new connections and keeps the old ones', async () => {
    const first = await client()
    first.socket.write('a')
    await until(() => first.text() === '<a>')
    proxy.set({ reject: true })
    const second = await client()
    await until(() => second.ended() !== undefined)
    first.socket.write('b')
    await until(() => first.text() === '<a><b>')
  })
})
