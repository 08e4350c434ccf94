import { join, resolve } from 'node:path'
import { buildPlayground } from '@weir/playground/build'
import { Command } from 'commander'
import { createServer } from 'vitepress'
import { buildSite, OUT, SITE } from './build.ts'
import { STAGE, stage } from './stage.ts'
import { faultsOf } from './validate.ts'

const program = new Command('site').description('The documentation as a web site.')

program
  .command('look', { isDefault: true })
  .description('shows it at an address of this machine')
  .option('--port <number>', 'of the address', '5173')
  .action(async ({ port }: { port: string }) => {
    stage()
    await buildPlayground(join(STAGE, 'public/playground'))
    const server = await createServer(SITE, { port: Number(port), host: '127.0.0.1' })
    await server.listen()
    server.printUrls()
  })

program
  .command('build')
  .description('writes static files that work from any folder of any server, without requests to others')
  .option('--out <folder>', 'where to', OUT)
  .action(async ({ out }: { out: string }) => {
    const directory = resolve(process.env['INIT_CWD'] ?? '.', out)
    await buildSite(directory)
    console.log(`written to ${directory}`)
  })

program
  .command('check')
  .description('looks for dead links, invalid HTML and requests to others in what was built')
  .action(async () => {
    const faults = await faultsOf(OUT)
    for (const fault of faults) console.log(fault)
    process.exitCode = faults.length === 0 ? 0 : 1
  })

await program.parseAsync()
