// Run by packages/acceptance in empty projects of every kind, from the packed tarball, against a real server if there is one. With a limit
// of 2, one process allows two requests, and a process that starts later gets a third.
import { createThrottler, type Throttler } from '@weir/core'
import { etcdStore } from '@weir/etcd'

async function main(): Promise<void> {
  const endpoint = process.env['ETCD_ENDPOINT'] ?? ''
  // Without a server a process counts alone.
  const store = () => etcdStore(endpoint === '' ? 'http://127.0.0.1:1' : endpoint, { namespace: `packed-${process.pid}` })
  const node = (): Throttler => createThrottler({ policies: [{ limit: 2, interval: '1h' }], closeTimeout: '10s', store: store() })
  const first = node()
  const outcomes = [first.check('ann'), first.check('ann')]
  if (endpoint === '') outcomes.push(first.check('ann'))
  await first.close()

  if (endpoint !== '') {
    const second = node().start()
    const deadline = Date.now() + 10_000
    while (second.peek('ann').allowed && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
    outcomes.push(second.check('ann'))
    await second.close()
  }
  console.log(outcomes.map(({ allowed }) => (allowed ? 'allowed' : 'rejected')).join(' '))
}

void main()
