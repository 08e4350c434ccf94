// Run by packages/acceptance in empty projects of every kind, from the packed tarball, against a real server if there is one. With a limit
// of 2, one process allows two requests, and a process that starts later gets a third.
import { createThrottler, type Throttler } from '@weir/core'
import { postgresStore } from '@weir/postgres'
import { Pool } from 'pg'

async function main(): Promise<void> {
  const url = process.env['POSTGRES_URL'] ?? ''
  // Without a server a process counts alone.
  const connectionString = url === '' ? 'postgres://nobody@127.0.0.1:1/nowhere' : url
  const schema = `packed_${process.pid}`
  const node = (): Throttler =>
    createThrottler({
      policies: [{ limit: 2, interval: '1h' }],
      closeTimeout: '10s',
      store: postgresStore(new Pool({ connectionString }), { schema }),
    })
  const first = node()
  const outcomes = [first.check('ann'), first.check('ann')]
  if (url === '') outcomes.push(first.check('ann'))
  await first.close()

  if (url !== '') {
    const second = node().start()
    const deadline = Date.now() + 10_000
    while (second.peek('ann').allowed && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
    outcomes.push(second.check('ann'))
    await second.close()
  }
  console.log(outcomes.map(({ allowed }) => (allowed ? 'allowed' : 'rejected')).join(' '))
}

void main()
