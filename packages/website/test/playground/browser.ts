import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { server } from '../../src/playground/serve.js'

export { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The serious and critical findings of axe, with the elements. */
export async function seriousOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

/** Serves the built page. Returns its address. */
export async function serve(): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

export function unserve(): void {
  server.closeAllConnections()
  server.close()
}
