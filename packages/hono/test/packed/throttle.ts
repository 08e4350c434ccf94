// The program that packages/acceptance runs in empty projects of every kind, from the packed tarball. It sends three requests to a
// limit of 2. It starts no server, because the types of Hono's own server need those of a browser.
import { throttle } from '@weir/hono'
import { Hono } from 'hono'

async function main(): Promise<void> {
  const app = new Hono()
  app.use(throttle({ key: 'ip', limit: 2, interval: '1h' }))
  app.get('/', (c) => c.text('hello'))
  const outcomes: string[] = []
  for (let request = 0; request < 3; request++) {
    const { status } = await app.request('/')
    outcomes.push(status === 200 ? 'allowed' : status === 429 ? 'rejected' : String(status))
  }
  console.log(outcomes.join(' '))
}

void main()
