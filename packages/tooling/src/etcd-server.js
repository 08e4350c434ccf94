import { existsSync } from 'node:fs'
import { run, which } from './run.js'

/**
 * The `etcd` program that tests start, from ETCD_SERVER or PATH.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function findEtcdServer(env = process.env) {
  const given = env['ETCD_SERVER']
  if (given !== undefined && given !== '') return existsSync(given) ? given : which(given, env['PATH'])
  return which('etcd', env['PATH'])
}

/**
 * Installs `etcd` if it is missing and the installation needs no questions, as root on Debian. Without it the tests of the etcd store are
 * skipped.
 *
 * @returns {Promise<string | undefined>} the message for the user if it is missing and can't be installed here
 */
export async function ensureEtcdServer() {
  if (findEtcdServer() !== undefined) return undefined
  const skipped = `etcd was not found: the tests of the etcd store are skipped.
  Debian, Ubuntu:  sudo apt-get install etcd-server
  macOS:           brew install etcd
  elsewhere:       set ETCD_SERVER to the path of the program`
  if ((process.env['ETCD_SERVER'] ?? '') !== '' || process.getuid?.() !== 0 || which('apt-get') === undefined) return skipped

  console.log('etcd is missing: installing it with apt-get')
  // Without these, apt waits for answers, and the package's own service starts on the default port.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'etcd-server']]) {
    const { status, output } = await run('apt-get', args, { env })
    if (status !== 0) return `apt-get ${args.join(' ')} failed:\n${output.trim()}\n\n${skipped}`
  }
  return findEtcdServer() === undefined ? skipped : undefined
}
