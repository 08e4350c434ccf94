import { fork } from 'node:child_process'
import { calendar } from '@weir/core'
import { serveIpc } from '@weir/core/ipc'
import { expect, onTestFinished, test } from 'vitest'

type Told = Readonly<Record<'leased' | 'central', { readonly allowed: number; readonly again: number }>>

/** The report of a child process that counts through its parent. */
function child(): Promise<Told> {
  const file = new URL('./fixtures/calendar-child.ts', import.meta.url)
  const forked = fork(file, { execArgv: ['--import', 'tsx', '--conditions=@weir/source'] })
  onTestFinished(() => void forked.kill('SIGKILL'))
  return new Promise((resolve, reject) => {
    forked.on('message', (message: { readonly told?: Told }) => {
      if (message.told !== undefined) resolve(message.told)
    })
    forked.on('exit', () => reject(new Error('the child is gone')))
  })
}

test('processes of one parent share the units of a month, and agree when the next one begins', { timeout: 60_000 }, async () => {
  const service = serveIpc()
  onTestFinished(() => service.close())
  const { end } = calendar('month', { timeZone: 'Asia/Kathmandu' }).at(Date.now())
  const [one, two] = [await child(), await child()]
  for (const coordination of ['leased', 'central'] as const) {
    expect(one[coordination].allowed, coordination).toBe(10)
    expect(two[coordination].allowed, coordination).toBe(0)
    for (const { again } of [one[coordination], two[coordination]]) expect(Math.abs(again - end), coordination).toBeLessThan(2_000)
  }
})
