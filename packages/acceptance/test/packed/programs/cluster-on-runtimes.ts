// A primary of node:cluster with two workers, which share a limit of 20 through it. Each worker sends 15 requests and prints the number of
// those allowed.
import cluster from 'node:cluster'
import { createThrottler } from '@weir/core'
import { ipcStore, serveIpc } from '@weir/core/ipc'

async function work(): Promise<void> {
  const policy = { limit: 20, interval: '23h', coordination: 'central', storeTimeout: '30s' } as const
  const throttler = createThrottler({ policies: [policy], store: ipcStore({ timeout: '30s' }) })
  let allowed = 0
  for (let sent = 0; sent < 15; sent++) if ((await throttler.checkAsync('ann')).allowed) allowed++
  console.log(allowed)
  await throttler.close()
  cluster.worker?.disconnect()
}

if (cluster.isPrimary) {
  serveIpc()
  for (let worker = 0; worker < 2; worker++) cluster.fork()
} else void work()
