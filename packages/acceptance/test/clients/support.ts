import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { run } from '@weir/cli'
import type { LimitedKey, MergedKeyUsage, Snapshot } from '@weir/core/inspect'
import type { Browser, Locator } from 'playwright-core'
import { expect } from 'vitest'

/** A process that serves its screens. */
export interface Watched {
  readonly child: ChildProcess
  readonly url: string
}

/** Starts a bundled program, which sends its port. */
export async function startWatched(program: string, redis: string): Promise<Watched> {
  const child = fork(program, [redis], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [port] = (await once(child, 'message')) as [number]
  return { child, url: `http://127.0.0.1:${port}` }
}

export function snapshotsOf(processes: readonly Watched[]): Promise<Snapshot[]> {
  return Promise.all(processes.map(async ({ url }) => (await (await fetch(`${url}/snapshot`)).json()) as Snapshot))
}

export const sum = (numbers: readonly number[]): number => numbers.reduce((all, number) => all + number, 0)

/** The metrics of all processes, added up. */
export async function metricsOf(processes: readonly Watched[]): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  for (const { url } of processes) {
    for (const line of (await (await fetch(`${url}/metrics`)).text()).split('\n')) {
      const [, name = '', value] = /^(weir_\w+\{[^}]*\}) (\S+)$/.exec(line) ?? []
      if (value !== undefined) found.set(name, (found.get(name) ?? 0) + Number(value))
    }
  }
  return found
}

/** The sum of the metrics with these labels. */
export function metric(all: ReadonlyMap<string, number>, name: string, ...labels: readonly string[]): number {
  return sum([...all].flatMap(([full, value]) => (full.startsWith(`${name}{`) && labels.every((one) => full.includes(one)) ? [value] : [])))
}

/** The output of `weir top`. */
export interface Top {
  readonly limited: readonly LimitedKey[]
  readonly hot: readonly MergedKeyUsage[]
  readonly nodes: readonly { readonly requests: { readonly allowed: number; readonly rejected: number } }[]
}

export async function topOf(store: string, namespace: string): Promise<Top> {
  let out = ''
  const stdout = Object.assign(new Writable({ write: (piece, _encoding, done) => done(void (out += String(piece))) }), {
    isTTY: false,
    columns: 120,
  })
  const surroundings = { stdin: Readable.from([]), stdout, stderr: stdout, env: {} }
  const code = await run(['top', '--store', store, '--namespace', namespace, '--most', '100', '--json'], surroundings as never, '1.0.0')
  expect(code, out).toBe(0)
  return JSON.parse(out)
}

/** A row of a list of keys on the page. */
export interface Row {
  readonly policy: string
  readonly key: string
  /** The text of the column with `total` or `part`. */
  readonly text: string
}

/** Opens the page, and waits until one of its lists has the expected rows. */
export async function shownRows(
  browser: Browser,
  url: string,
  list: 'limited' | 'top',
  isComplete: (rows: readonly Row[]) => boolean,
): Promise<readonly Row[]> {
  const page = await browser.newPage()
  try {
    await page.goto(`${url}/weir/`)
    const section = page.locator(`section[aria-labelledby="${list}"]`)
    let rows: readonly Row[] = []
    const read = async () => isComplete((rows = await rowsOf(section)))
    await expect
      .poll(read, { timeout: 20_000 })
      .toBe(true)
      .catch((error) => {
        throw new Error(`The page shows ${JSON.stringify(rows)}`, { cause: error })
      })
    return rows
  } finally {
    await page.close()
  }
}

async function rowsOf(section: Locator): Promise<readonly Row[]> {
  const all = section.getByRole('button', { name: /^Show all/ })
  if (await all.isVisible()) await all.click()
  return await section.locator('tbody tr').evaluateAll((trs) =>
    trs.map((tr) => ({
      policy: tr.querySelector('.rule a')?.textContent ?? '',
      key: tr.querySelector('a.key')?.textContent ?? '',
      text: tr.querySelector('[data-label="Total"], .part')?.textContent ?? '',
    })),
  )
}
