import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

// PM2 sets these variables, and writes its pid into this file.
const home = mkdtempSync(join(tmpdir(), 'weir-pm2-'))
afterAll(() => rmSync(home, { recursive: true }))

async function childOf(pm2: number, env: NodeJS.ProcessEnv): Promise<unknown> {
  writeFileSync(join(home, 'pm2.pid'), String(pm2))
  const child = fork(new URL('./fixtures/ipc-pm2.ts', import.meta.url), {
    env: { ...process.env, ...env },
    execArgv: ['--import', 'tsx', '--conditions=@weir/source'],
  })
  const exited = once(child, 'exit')
  const [results] = await once(child, 'message')
  await exited
  return results
}

const STARTED = { pm_id: '0', PM2_HOME: home }

test('a process that PM2 started can use ipcStore() only for its own children', async () => {
  const error = expect.stringMatching(/^ipcStore\(\) can't share counts between processes of PM2.* Use redisStore\(url\)/)
  expect(await childOf(process.pid, STARTED)).toEqual([error, 'ipc'])
})

test('children of a process that PM2 started can use ipcStore()', async () => {
  expect(await childOf(process.ppid, STARTED)).toEqual(['ipc', 'ipc'])
})

test('a process that PM2 did not start can use ipcStore()', async () => {
  expect(await childOf(process.pid, { PM2_HOME: home })).toEqual(['ipc', 'ipc'])
})
