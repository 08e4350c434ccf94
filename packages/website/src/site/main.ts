import { join, resolve } from 'node:path'
import { Command } from 'commander'
import { createServer } from 'vitepress'
import { buildPlayground } from '../playground/build.js'
import { buildSite, OUT, SITE } from './build.ts'
import { buildReleases } from './releases.ts'
import { STAGE, stage } from './stage.ts'
import { faultsOf } from './validate.ts'

/** Resolves the folder from the user's current directory, because pnpm runs the script in another one. */
const folderOf = (out: string): string => resolve(process.env['INIT_CWD'] ?? '.', out)

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
  .option('--versions <list>', 'whose sites lie in folders beside it, newest first: 1.1.0,1.0.0')
  .action(async ({ out, versions }: { out: string; versions?: string }) => {
    const directory = folderOf(out)
    await buildSite(directory, versions?.split(','))
    console.log(`written to ${directory}`)
  })

program
  .command('releases')
  .description('writes the sites of all releases, one folder per version, from the tags of the repository')
  .requiredOption('--out <folder>', 'where to')
  .action(async ({ out }: { out: string }) => {
    await buildReleases(folderOf(out))
    console.log(`written to ${folderOf(out)}`)
  })

program
  .command('check')
  .description('checks the built site for dead links, invalid HTML and requests to other servers')
  .action(async () => {
    const faults = await faultsOf(OUT)
    for (const fault of faults) console.log(fault)
    process.exitCode = faults.length === 0 ? 0 : 1
  })

await program.parseAsync()
