import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/**
 * The path of the program `name` on PATH, or undefined.
 *
 * @param {string} name
 * @param {string} [path]
 * @returns {string | undefined}
 */
export function which(name, path = process.env['PATH'] ?? '') {
  const endings = process.platform === 'win32' ? ['.cmd', '.exe', ''] : ['']
  for (const directory of path.split(delimiter)) {
    for (const ending of endings) {
      const file = join(directory, name + ending)
      if (directory !== '' && existsSync(file)) return file
    }
  }
  return undefined
}

/** @typedef {{ status: number, stdout: string, output: string }} Outcome */
/** @typedef {{ cwd?: string, env?: NodeJS.ProcessEnv, inherit?: boolean }} RunOptions */

/**
 * Runs a program to its end. `output` is the text of both streams, in order of arrival.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<Outcome>}
 * @throws if the program can't be started.
 */
export function run(command, args, { cwd, env, inherit = false } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...(cwd === undefined ? {} : { cwd }),
      env: env ?? process.env,
      stdio: ['ignore', inherit ? 'inherit' : 'pipe', inherit ? 'inherit' : 'pipe'],
      shell: process.platform === 'win32',
    })
    let stdout = ''
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      stdout += text
      output += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      output += text
    })
    child.on('error', reject)
    child.on('close', (status) => resolve({ status: status ?? 1, stdout, output }))
  })
}

/**
 * Runs a program like `run`, and fails with its whole output if it ends with a status other than 0.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<string>} its standard output
 */
export async function mustRun(command, args, options) {
  const { status, stdout, output } = await run(command, args, options)
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}\n${output}`)
  return stdout
}

/** @type {Promise<string> | undefined} */
let pnpmFile

/**
 * Runs pnpm from PATH or, if pnpm did not start this process, through npx. Fails like `mustRun`.
 *
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<string>} its standard output
 */
export async function pnpm(args, options) {
  const onPath = which('pnpm')
  // Kept for later calls, because npx needs longer to find pnpm than pnpm needs for most of its work.
  pnpmFile ??=
    onPath === undefined ? mustRun('npx', ['-y', '-p', 'pnpm', 'which', 'pnpm']).then((out) => out.trim()) : Promise.resolve(onPath)
  const file = await pnpmFile
  const env = options?.env ?? process.env
  // Added to PATH, because turbo looks for pnpm there.
  return mustRun(file, args, { ...options, env: { ...env, PATH: `${env['PATH']}${delimiter}${dirname(file)}` } })
}
