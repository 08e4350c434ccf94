import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { ARRIVED_HEADER } from '../src/processes/messages.ts'
import { Sender } from '../src/traffic/sender.ts'
import { Tally } from '../src/traffic/tally.ts'

test('of what was rejected it is told what a gateway rejected without the store', async () => {
  const answers = ['ok', 'storeDown', 'limit', 'storeDown', 'blocked']
  const server = createServer((_request, response) => {
    const reason = answers.shift()
    response.writeHead(reason === 'ok' ? 200 : 429, { [ARRIVED_HEADER]: '1000' }).end(reason)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const tally = new Tally(1, 1_000)
  const sender = new Sender([(server.address() as AddressInfo).port], (answer) => tally.add(answer))
  for (const client of ['alice', 'alice', 'alice', 'bob', 'bob']) {
    sender.send({ client, method: 'GET', path: '/' }, 1_000)
    await sender.drain()
  }
  expect(tally.total()).toEqual({ allowed: 1, rejected: 4, errors: 0 })
  expect([...tally.storeDown]).toEqual([
    ['alice', 1],
    ['bob', 1],
  ])
  sender.close()
  server.close()
})
