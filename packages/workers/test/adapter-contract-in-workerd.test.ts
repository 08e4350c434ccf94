import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { memoryStore } from '@weir/core'
import { type AdapterUnderTest, adapterContract } from '@weir/testing'
import { bundleWorker, Workerd } from '@weir/tooling/workerd'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ABILITIES, type CaseToRun, titleOf, VARIANTS, WITHOUT } from './adapter-contract-cases.ts'

/** The cases that run in `pnpm test`. All of them run in `pnpm test:matrix workerd`. */
const SMOKE = new Set([
  'lets in as many requests as the limit says, and rejects the next',
  'frees each slot of a request as its policy says',
  'goes on whatever becomes of estimate',
  'never lets in one too many at several nodes where the store decides',
])
/** Cases under titles that the contract doesn't have. */
const missing = new Set(SMOKE)
const isWhole = process.env['npm_lifecycle_event'] === 'test:workerd'

/** More than the applications of all cases that run at a time. */
const ENTRANCES = 100

/** Workers report clients that leave before their response only with this flag. */
const FLAGS = ['enable_request_signal']

let workerd: Workerd
let relay: Server
beforeAll(async () => {
  const code = await bundleWorker(fileURLToPath(new URL('adapter-contract-worker.ts', import.meta.url)))
  workerd = await Workerd.start(code, 1, { WEIR: 'WeirHub' }, { entrances: ENTRANCES, flags: FLAGS })
  relay = createServer(relayed)
  await new Promise<void>((resolve) => void relay.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  relay?.close()
  await workerd?.close()
})

/** Sends a request of a case to the Worker unchanged. workerd would change its path. */
const relayed: Parameters<typeof createServer>[1] = (incoming, outgoing) => {
  const options = JSON.parse(decodeURIComponent(String(incoming.headers['x-request'])))
  const sent = request({ ...options, agent: false }, (response) => {
    outgoing.writeHead(response.statusCode ?? 0, response.rawHeaders)
    response.on('error', () => outgoing.destroy()).pipe(outgoing)
  })
  sent.on('error', () => outgoing.destroy())
  // workerd notices at once only if a connection is reset.
  outgoing.on('close', () => sent.socket?.resetAndDestroy())
  incoming.pipe(sent)
}

/** Runs a case in the Worker. */
async function runInWorker(title: string): Promise<void> {
  const { port } = relay.address() as AddressInfo
  const entrances = workerd.ports.flatMap((at, place) => (place === 0 ? [] : [[`${place}`, at] as const]))
  const body: CaseToRun = { title, relay: port, entrances }
  const response = await workerd.fetch(0, '/', { method: 'POST', body: JSON.stringify(body) })
  expect(await response.text()).toBe('passed')
}

for (const variant of VARIANTS) {
  const hasStore = variant === 'with a Durable Object'
  const inTurn = hasStore ? test.concurrent : test
  adapterContract(`@weir/web in workerd ${variant}`, ABILITIES as AdapterUnderTest<Request>, {
    describe,
    test: (title, _run, timeout) => {
      missing.delete(title)
      if (isWhole || SMOKE.has(title)) inTurn(title, () => runInWorker(titleOf(variant, title)), timeout)
    },
    // The Worker makes the store of a case.
    ...(hasStore && { store: memoryStore }),
    without: WITHOUT,
  })
}

test('every chosen case exists, and a case that the Worker does not have fails', async () => {
  expect([...missing]).toEqual([])
  await expect(runInWorker('none')).rejects.toThrow('The Worker has no case "none".')
})
