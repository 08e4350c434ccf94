import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { run, which } from './run.js'

/** The folder in which Debian installs the programs of each version. Only some of them are on PATH. */
const DEBIAN = '/usr/lib/postgresql'

/** @param {string} folder */
function hasAll(folder) {
  return ['initdb', 'postgres', 'psql'].every((name) => existsSync(join(folder, name)))
}

/**
 * The folder with `initdb` and `postgres` that tests start, from POSTGRES_BIN, PATH or Debian's folder.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function findPostgres(env = process.env) {
  const given = env['POSTGRES_BIN']
  if (given !== undefined && given !== '') return hasAll(given) ? given : undefined
  const initdb = which('initdb', env['PATH'])
  // A wrapper or link may be in a folder without the other programs.
  const beside = initdb === undefined ? undefined : dirname(realpathSync(initdb))
  if (beside !== undefined && hasAll(beside)) return beside
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  return versions.map((version) => join(DEBIAN, version, 'bin')).find(hasAll)
}

/**
 * The `pgbouncer` program, from PATH or Debian's folder for services.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {string | undefined}
 */
export function findPgbouncer(env = process.env) {
  const found = which('pgbouncer', env['PATH'])
  return found ?? ['/usr/sbin/pgbouncer'].find((file) => existsSync(file))
}

export const howToInstallPostgres = `PostgreSQL was not found, so the tests of its store are skipped. They start servers of their own on free ports.
  Debian, Ubuntu:  sudo apt-get install postgresql pgbouncer
  Fedora:          sudo dnf install postgresql-server pgbouncer
  macOS:           brew install postgresql pgbouncer
  elsewhere:       set POSTGRES_BIN to the folder that holds initdb and postgres`

/** Without these, apt waits for answers, and the package makes and starts a server of its own. */
const quietly = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }

/**
 * Installs PostgreSQL and pgbouncer if one is missing and the installation needs no questions, as root on Debian.
 *
 * @returns {Promise<string | undefined>} the message for the user if PostgreSQL is missing and can't be installed here
 */
export async function ensurePostgres() {
  if (findPostgres() !== undefined && findPgbouncer() !== undefined) return undefined
  const missing = () => (findPostgres() === undefined ? howToInstallPostgres : undefined)
  if (process.getuid?.() !== 0 || which('apt-get') === undefined) return missing()

  console.log('PostgreSQL or pgbouncer is missing: installing them with apt-get')
  const env = { ...process.env, ...quietly }
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'postgresql', 'pgbouncer']]) {
    const { status, output } = await run('apt-get', args, { env })
    if (status !== 0) {
      console.log(`apt-get ${args.join(' ')} failed:\n${output.trim()}`)
      break
    }
  }
  return missing()
}
