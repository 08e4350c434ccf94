import type { WeirError } from '@weir/core'
import type { FastifyServerOptions } from 'fastify'
import { describe, expect, test } from 'vitest'
import { weir } from '../src/index.ts'
import { FRAMEWORKS } from './frameworks.ts'

const IGNORED = 'Set trustProxy: "10.0.0.0/8" with the address or network of your proxy. Since Fastify 5.12.1 a number trusts none.'
const FORGEABLE = '"trustProxy" trusts every address'

describe.each(FRAMEWORKS)('%s', (name, framework) => {
  test.each<[trust: FastifyServerOptions['trustProxy'] | number, warned: string | undefined]>([
    [false, IGNORED],
    ['10.0.0.0/8', IGNORED],
    // Fastify 4, and 5 before 5.12.1, trust this number of proxies.
    [1, name.endsWith('4') ? undefined : IGNORED],
    ['1', IGNORED],
    ['loopback', undefined],
    [['127.0.0.1'], undefined],
    [(_, hop) => hop === 0, undefined],
    [true, FORGEABLE],
    ['0.0.0.0/1, 128.0.0.0/1', FORGEABLE],
    [() => true, FORGEABLE],
  ])('behind a proxy with trustProxy %s, the warning names the next step: %s', async (trustProxy, warned) => {
    const app = framework({ trustProxy: trustProxy as string })
    await app.register(weir, { key: 'ip', limit: 9, interval: '1h', coordination: 'local' })
    const warnings: WeirError[] = []
    app.throttler.on('warning', ({ error }) => warnings.push(error))
    app.get('/', (request) => request.throttle?.key)
    const keys: string[] = []
    for (const address of ['192.0.2.1', '192.0.2.2']) {
      keys.push((await app.inject({ url: '/', headers: { 'X-Forwarded-For': address } })).body)
    }
    await app.close()
    expect(keys).toEqual(warned === IGNORED ? ['127.0.0.1', '127.0.0.1'] : ['192.0.2.1', '192.0.2.2'])
    expect(warnings.map(({ code }) => code)).toEqual(warned === undefined ? [] : ['WEIR_WARN_TRUST_PROXY'])
    if (warned !== undefined) expect(warnings[0]?.message).toContain(warned)
  })
})
