// Run by packages/acceptance in empty projects of every kind, from the packed tarball. Two throttlers with a limit of 2 share an object in
// this process: the first one allows a request, and the second one allows another.
import { createThrottler } from '@weir/core'
import { durableObjectStore, WeirHub } from '@weir/workers'

async function main(): Promise<void> {
  const storage = { list: async () => new Map<string, unknown>(), put: async () => {}, delete: async () => 0 }
  const hub = new WeirHub({ storage, blockConcurrencyWhile: (run) => run() }, {})
  const store = () => durableObjectStore({ idFromName: (name) => name, get: () => hub })
  const policies = [{ limit: 2, interval: '1h', coordination: 'central' }] as const
  const throttlers = [createThrottler({ policies, store: store() }), createThrottler({ policies, store: store() })] as const
  const outcomes: string[] = []
  for (const throttler of [...throttlers, throttlers[0]]) {
    outcomes.push((await throttler.checkAsync('ann')).allowed ? 'allowed' : 'rejected')
  }
  await Promise.all(throttlers.map((throttler) => throttler.close()))
  console.log(outcomes.join(' '))
}

void main()
