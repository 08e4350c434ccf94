import { readFileSync } from 'node:fs'
import { run } from './program.ts'

/** Runs the command in this process with its arguments. `manifest` is the URL of its package.json. */
export async function main(manifest: URL): Promise<void> {
  // A reader such as `head` may close the pipe early. Then the program ends without an error.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      process.exit()
    })
  }
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string }
  const { stdin, stdout, stderr, env } = process
  process.exitCode = await run(process.argv.slice(2), { stdin, stdout, stderr, env }, version)
}
