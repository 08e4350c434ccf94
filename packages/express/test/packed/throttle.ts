// The program that packages/acceptance runs in empty projects of every kind, from the packed tarball. It sends three requests to a
// limit of 2.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { throttle } from '@weir/express'
import express from 'express'

async function main(): Promise<void> {
  const app = express()
  app.use(throttle({ key: 'ip', limit: 2, interval: '1h' }))
  app.get('/', (_req, res) => {
    res.send('hello')
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const outcomes: string[] = []
  for (let request = 0; request < 3; request++) {
    const { status } = await fetch(`http://127.0.0.1:${port}/`)
    outcomes.push(status === 200 ? 'allowed' : status === 429 ? 'rejected' : String(status))
  }
  console.log(outcomes.join(' '))
  server.close()
}

void main()
