import cluster from 'node:cluster'
import { parseArgs } from 'node:util'
import { processesOf, readConfig } from './config.ts'
import { ConfigError } from './config-error.ts'
import { createGateway } from './gateway.ts'
import { onStop, runProcesses } from './processes.ts'
import type { Config } from './schema.ts'
import { namedStore } from './store.ts'

try {
  const { file, store } = readArguments()
  const read = readConfig(file)
  const config = store === undefined ? read : { ...read, store }
  const processes = processesOf(config, file)
  if (processes !== undefined && cluster.isPrimary) await runProcesses(processes, config.store === 'ipc')
  else await serve(config)
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  console.error(error.message)
  process.exit(2)
}

async function serve(config: Config): Promise<void> {
  const gateway = await createGateway(config)
  let stopping = false
  const stop = async (): Promise<void> => {
    if (stopping) return
    stopping = true
    setTimeout(() => process.exit(1), (config.drainSeconds + config.shutdownSeconds) * 1000).unref()
    await gateway.close()
    process.exit(0)
  }
  if (cluster.isWorker) onStop(() => void stop())
  else {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // A second signal ends the process at once.
        if (stopping) process.exit(1)
        console.log(`${signal}: finishing open requests.`)
        void stop()
      })
    }
  }
  const address = await gateway.app.listen(config.listen)
  if (!cluster.isWorker) console.log(`The gateway listens on ${address}. Its health: ${address}/-/health`)
}

function readArguments(): { file: string; store: string | undefined } {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { store: { type: 'string' } } })
    const store = values.store === undefined ? undefined : namedStore(values.store)
    const [file = 'gateway.yaml', ...surplus] = positionals
    if (surplus.length === 0 && (store === undefined) === (values.store === undefined)) return { file, store }
  } catch {
    // An unknown option.
  }
  console.error('Usage: gateway [configuration.yaml] [--store redis|postgres|etcd|ipc|ADDRESS]')
  process.exit(2)
}
