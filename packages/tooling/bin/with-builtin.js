#!/usr/bin/env node
// Runs a command on a Node.js that has a built-in module, e.g. `weir-with-builtin node:sqlite vitest run`: on this Node.js if it
// has the module, otherwise on a newer one. If npm can't install a newer one, the command runs on this one and skips its tests.
import { isBuiltin } from 'node:module'
import { onNode } from '../src/node.js'
import { run } from '../src/run.js'

const NEWER = '24'

const [module = '', command = '', ...args] = process.argv.slice(2)
let env = process.env
if (!isBuiltin(module)) {
  try {
    env = await onNode(NEWER)
  } catch (error) {
    console.warn(`Node.js ${process.versions.node} has no ${module}, and no newer Node.js can be installed: ${error}`)
  }
}
process.exit((await run(command, args, { env, inherit: true })).status)
