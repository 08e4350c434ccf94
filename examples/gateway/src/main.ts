import { readConfig } from './config.ts'
import { ConfigError } from './config-error.ts'
import { createGateway } from './gateway.ts'

const [file = 'gateway.yaml', ...surplus] = process.argv.slice(2)
if (surplus.length > 0 || file.startsWith('-')) {
  console.error('Usage: gateway [configuration.yaml]')
  process.exit(2)
}

try {
  const config = readConfig(file)
  const gateway = await createGateway(config)
  const address = await gateway.app.listen(config.listen)
  console.log(`The gateway listens on ${address}; its health: ${address}/-/health`)

  let stopping = false
  const stop = async (signal: string): Promise<void> => {
    // Asked twice: somebody is in a hurry.
    if (stopping) process.exit(1)
    stopping = true
    console.log(`${signal}: finishing what is under way.`)
    setTimeout(() => process.exit(1), (config.drainSeconds + config.shutdownSeconds) * 1000).unref()
    await gateway.close()
    process.exit(0)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop(signal))
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  console.error(error.message)
  process.exit(2)
}
