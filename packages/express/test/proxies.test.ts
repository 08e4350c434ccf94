import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { WeirError } from '@weir/core'
import { describe, expect, test } from 'vitest'
import { throttle } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

describe.each(FRAMEWORKS)('%s', (_, framework) => {
  test.each([
    [false, '10.0.0.0/8") with the address'],
    ['10.0.0.0/8', '10.0.0.0/8") with the address'],
    // A string, as from an environment variable, is an address of 32 bits, not a number of proxies.
    ['1', '10.0.0.0/8") with the address'],
    ['loopback', undefined],
    [1, undefined],
    [2, undefined],
    [true, '"trust proxy" trusts every address'],
    ['0.0.0.0/1, 128.0.0.0/1', '"trust proxy" trusts every address'],
    [() => true, '"trust proxy" trusts every address'],
  ])('behind a proxy with "trust proxy" %s, the warning names the next step: %s', async (trust, warned) => {
    const app = framework()
    if (trust !== false) app.set('trust proxy', trust)
    const limit = throttle({ key: 'ip', limit: 9, interval: '1h', coordination: 'local' })
    const warnings: WeirError[] = []
    limit.throttler.on('warning', ({ error }) => warnings.push(error))
    app.use(limit, (_req, res) => void res.end())
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      for (const address of ['192.0.2.1', '192.0.2.2']) await fetch(url, { headers: { 'X-Forwarded-For': address } })
    } finally {
      server.closeAllConnections()
      server.close()
      await limit.throttler.close()
    }
    expect(warnings.map(({ code }) => code)).toEqual(warned === undefined ? [] : ['WEIR_WARN_TRUST_PROXY'])
    if (warned !== undefined) expect(warnings[0]?.message).toContain(warned)
  })
})
