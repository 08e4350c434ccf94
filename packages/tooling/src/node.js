import { delimiter, dirname } from 'node:path'
import { mustRun } from './run.js'

/**
 * The environment for programs that run on another Node.js. The npm package `node` contains it, so nothing has to be installed first.
 *
 * @param {string} version e.g. `22` or `24.1.0`
 * @returns {Promise<NodeJS.ProcessEnv>}
 * @throws if npm can't install it.
 */
export async function onNode(version) {
  const file = (await mustRun('npx', ['-y', '-p', `node@${version}`, 'node', '-p', 'process.execPath'])).trim()
  return { ...process.env, PATH: `${dirname(file)}${delimiter}${process.env['PATH']}` }
}
