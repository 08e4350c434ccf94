import { manualClock } from '@weir/testing'
import { expect, test } from 'vitest'
import { Keeper } from '../src/ioredis/keeper.ts'
import type { Client } from '../src/ioredis/template.ts'

const PATIENCE = 500

/** A client that connects when the test decides. The test sets the bytes that it has read. */
class FakeClient {
  status = 'wait'
  stream: { connecting: boolean; bytesRead: number } | null = null
  attempts = 0
  #fail: (error: Error) => void = () => {}

  on(): this {
    return this
  }

  connect(): Promise<void> {
    this.attempts++
    this.status = 'connecting'
    this.stream = { connecting: true, bytesRead: 0 }
    return new Promise((_resolve, reject) => {
      this.#fail = reject
    })
  }

  disconnect(): void {
    this.status = 'end'
    this.#fail(new Error('Connection is closed.'))
  }
}

function keep(): { client: FakeClient; pass(ms: number): Promise<void> } {
  const clock = manualClock()
  const client = new FakeClient()
  new Keeper(client as unknown as Client, clock, PATIENCE)
  return { client, pass: (ms) => clock.advance(ms) }
}

test('an attempt that is met with silence is given up once, and the next one follows at once', async () => {
  const { client, pass } = keep()
  if (client.stream !== null) client.stream.connecting = false
  await pass(PATIENCE - 20)
  expect(client.attempts).toBe(1)
  await pass(120)
  expect(client.attempts).toBe(2)
})

test('a handshake goes on as long as something comes', async () => {
  const { client, pass } = keep()
  if (client.stream !== null) client.stream.connecting = false
  for (let replies = 1; replies < 6; replies++) {
    await pass(PATIENCE - 60)
    if (client.stream !== null) client.stream.bytesRead += 10
  }
  expect(client.attempts).toBe(1)
  await pass(PATIENCE + 120)
  expect(client.attempts).toBe(2)
})

test('a connection that takes long to be made has twice the time', async () => {
  const { client, pass } = keep()
  await pass(2 * PATIENCE - 60)
  expect(client.attempts).toBe(1)
  await pass(120)
  expect(client.attempts).toBe(2)
})
