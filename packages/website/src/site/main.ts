import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { createServer } from 'vitepress'
import { buildPlayground } from '../playground/build.js'
import { buildSite, OUT, SITE, type SiteOptions } from './build.ts'
import { drawCard } from './card.ts'
import { buildReleases } from './releases.ts'
import { STAGE, stage } from './stage.ts'
import { faultsOf } from './validate.ts'

/** Resolves the folder from the user's current directory, because pnpm runs the script in another one. */
const folderOf = (out: string): string => resolve(process.env['INIT_CWD'] ?? '.', out)

/** Reads the absolute address of a folder, to which the paths of pages are appended. */
function addressOf(text: string): string {
  if (!URL.canParse(text) || !/^https?:/i.test(text))
    throw new InvalidArgumentError('Use a whole address, such as https://docs.example.com/weir/.')
  const { origin, pathname } = new URL(text)
  return `${origin}${pathname.replace(/\/*$/, '/')}`
}

type Place = Pick<SiteOptions, 'address' | 'repository'>

const ADDRESS = ['--address <url>', 'where it will be published, for the sitemap and link previews'] as const
const REPOSITORY = ['--repository <url>', 'for links that edit a page, instead of the "repository" of package.json'] as const

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
  .option(...ADDRESS, addressOf)
  .option(...REPOSITORY)
  .action(async ({ out, versions, ...place }: { out: string; versions?: string } & Place) => {
    const directory = folderOf(out)
    await buildSite(directory, { ...place, versions: versions?.split(',') ?? [] })
    console.log(`written to ${directory}`)
  })

program
  .command('releases')
  .description('writes the sites of all releases, one folder per version, from the tags of the repository')
  .requiredOption('--out <folder>', 'where to')
  .option(...ADDRESS, addressOf)
  .option(...REPOSITORY)
  .action(async ({ out, ...place }: { out: string } & Place) => {
    await buildReleases(folderOf(out), place)
    console.log(`written to ${folderOf(out)}`)
  })

program.command('card').description('draws the picture of link previews').action(drawCard)

program
  .command('check')
  .description('checks the built site for dead links, invalid HTML and requests to other servers')
  .action(async () => {
    const faults = await faultsOf(OUT)
    for (const fault of faults) console.log(fault)
    process.exitCode = faults.length === 0 ? 0 : 1
  })

await program.parseAsync()
