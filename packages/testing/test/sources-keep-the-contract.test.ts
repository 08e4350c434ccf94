import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileRules, httpRules, type RulesSource } from '@weir/core/rules'
import { describe, expect, test } from 'vitest'
import { type RulesSourceFixture, rulesSourceContract } from '../src/index.ts'

function file(): RulesSourceFixture {
  const folder = mkdtempSync(join(tmpdir(), 'weir-source-'))
  const path = join(folder, 'rules.yaml')
  const remove = () => rmSync(folder, { recursive: true, force: true })
  return { source: () => fileRules(path), put: (text) => writeFileSync(path, text), goAway: remove, close: remove }
}

async function address(): Promise<RulesSourceFixture> {
  let held: string | undefined
  let tag = 0
  const server = createServer((request, response) => {
    if (held === undefined) response.writeHead(404).end()
    else if (request.headers['if-none-match'] === `"${tag}"`) response.writeHead(304).end()
    else response.writeHead(200, { etag: `"${tag}"` }).end(held)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  return {
    source: () => httpRules(`http://127.0.0.1:${port}/rules`),
    put: (text) => {
      held = text
      tag++
    },
    goAway: stop,
    close: stop,
  }
}

rulesSourceContract('fileRules', file, { describe, test })
rulesSourceContract('httpRules', address, { describe, test })

/** Faults of a source, each of which breaks a case. */
const faults: readonly (readonly [string, (source: RulesSource) => Partial<RulesSource>])[] = [
  ['holds nothing where it can not be read', (source) => ({ read: (signal) => source.read(signal).catch(() => undefined) })],
  ['cuts what is long', (source) => ({ read: async (signal) => (await source.read(signal))?.slice(0, 1_000_000) })],
  [
    'replaces whatever is there',
    (source) => ({ replace: async (_, text) => (await source.replace?.(await source.read(new AbortController().signal), text)) ?? false }),
  ],
]

describe('the contract finds a source that', () => {
  test.each(faults)('%s', async (_, fault) => {
    const failed: string[] = []
    const running: Promise<void>[] = []
    const make = (): RulesSourceFixture => {
      const good = file()
      return { ...good, source: () => ({ ...good.source(), ...fault(good.source()) }) }
    }
    rulesSourceContract('a bad one', make, {
      describe: (_name, define) => define(),
      test: (title, run) => running.push(run().catch(() => void failed.push(title))),
    })
    await Promise.all(running)
    expect(failed).toHaveLength(1)
  })
})
