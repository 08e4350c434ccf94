import { existsSync } from 'node:fs'
import { run, which } from './run.js'

/**
 * The `redis-server` program that tests start, from REDIS_SERVER or PATH.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function findRedisServer(env = process.env) {
  const given = env['REDIS_SERVER']
  if (given !== undefined && given !== '') return existsSync(given) ? given : which(given, env['PATH'])
  return which('redis-server', env['PATH'])
}

const howToInstall = `redis-server was not found. The tests of the Redis store start servers of their own on free ports and need the program.
  Debian, Ubuntu:  sudo apt-get install redis-server
  Fedora:          sudo dnf install redis
  macOS:           brew install redis
  elsewhere:       set REDIS_SERVER to the path of the program
Then run the same command again.`

/** Without these, apt waits for answers, and the package's own service starts on the default port. */
const quietly = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }

/**
 * Installs `redis-server` if it is missing and the installation needs no questions, as root on Debian.
 *
 * @returns {Promise<string | undefined>} the message for the user if it is missing and can't be installed here
 */
export async function ensureRedisServer() {
  if (findRedisServer() !== undefined) return undefined
  const given = process.env['REDIS_SERVER']
  if (given !== undefined && given !== '') return `REDIS_SERVER is ${JSON.stringify(given)}, but there is no such program.`
  if (process.getuid?.() !== 0 || which('apt-get') === undefined) return howToInstall

  console.log('redis-server is missing: installing it with apt-get')
  const env = { ...process.env, ...quietly }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'redis-server']]) {
    const { status, output } = await run('apt-get', args, { env })
    if (status !== 0) return `apt-get ${args.join(' ')} failed:\n${output.trim()}\n\n${howToInstall}`
  }
  return findRedisServer() === undefined ? howToInstall : undefined
}
