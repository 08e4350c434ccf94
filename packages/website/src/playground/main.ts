import type { AddressInfo } from 'node:net'
import { Command } from 'commander'
import { buildPlayground } from './build.js'
import { run } from './runs/run.ts'
import { server } from './serve.js'
import { readAddress, writeAddress } from './settings/settings.ts'
import { written } from './tables/write.ts'

interface Flags {
  readonly numbers?: string
}

const program = new Command('playground')
  .description('The limiter in a web page, in virtual time: builds it and shows it on this machine.')
  .argument('[port]', 'of its address', '4321')
  .option('--numbers <address>', 'prints the numbers of a shared address instead, as the page shows them')
  .action((port: string, { numbers }: Flags) => (numbers === undefined ? show(Number(port)) : print(numbers)))

async function show(port: number): Promise<void> {
  await buildPlayground()
  server.on('error', ({ message }) => {
    console.error(`weir playground: ${message} (another port: pnpm playground 8080)`)
    process.exitCode = 1
  })
  server.listen(port, '127.0.0.1', () => {
    console.log(`The playground is at http://localhost:${(server.address() as AddressInfo).port}/`)
  })
}

/** @param address - a whole address, or only its search part */
async function print(address: string): Promise<void> {
  const settings = readAddress(/\?.*/s.exec(address)?.[0].replace(/#.*/s, '') ?? address)
  console.log(`${writeAddress(settings)}\n\n${written(await run(settings))}`)
}

await program.parseAsync()
