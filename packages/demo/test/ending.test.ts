import { describe, expect, it } from 'vitest'
import { alive, commandOf, Demo, descendants } from './support/run.ts'

const TIMEOUT = { timeout: 180_000 }

/** A demo whose gateways are working, and the processes that it started. */
async function started(args: readonly string[] = []): Promise<{ demo: Demo; pids: number[] }> {
  const demo = new Demo(['--duration', '60', '--interval', '500ms', '--limit', '20', ...args])
  await expect.poll(() => demo.stdout, { timeout: 100_000, interval: 100 }).toMatch(/mallory \d+ of 20/)
  const pids = descendants(demo.process.pid as number)
  // The backend and three gateways, at least.
  expect(pids.length).toBeGreaterThanOrEqual(4)
  return { demo, pids }
}

async function expectAllGone(pids: readonly number[]): Promise<void> {
  await expect.poll(() => pids.filter(alive), { timeout: 20_000, interval: 100 }).toEqual([])
}

describe('no process is left behind', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('after %s, and the summary is printed all the same', TIMEOUT, async (signal, code) => {
    const { demo, pids } = await started()
    demo.process.kill(signal)
    const ended = await demo.ended()
    expect(ended.code).toBe(code)
    expect(ended.stdout).toContain('Ended early')
    await expectAllGone(pids)
  })

  it('when the demo itself is killed', TIMEOUT, async () => {
    const { demo, pids } = await started()
    demo.process.kill('SIGKILL')
    await demo.ended()
    await expectAllGone(pids)
  })

  it('when it is interrupted while it starts', TIMEOUT, async () => {
    const demo = new Demo(['--duration', '60', '--json'])
    let pids: number[] = []
    await expect
      .poll(() => (pids = descendants(demo.process.pid as number)).length, { timeout: 100_000, interval: 10 })
      .toBeGreaterThanOrEqual(1)
    demo.process.kill('SIGINT')
    pids.push(...descendants(demo.process.pid as number))
    expect((await demo.ended()).code).toBe(130)
    await expectAllGone(pids)
  })

  it('when a gateway dies, which the summary tells', TIMEOUT, async () => {
    const { demo, pids } = await started(['--duration', '10', '--store', 'ipc'])
    const gateway = pids.find((pid) => /gateway\.mjs.*koa/.test(commandOf(pid)))
    process.kill(gateway as number, 'SIGKILL')
    const { code, stdout } = await demo.ended()
    expect(stdout).toContain('✗ every request was answered (the koa gateway: it ended with SIGKILL')
    expect(code).toBe(1)
    await expectAllGone(pids)
  })
})
