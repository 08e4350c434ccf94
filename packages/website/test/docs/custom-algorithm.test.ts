import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Algorithm, createThrottler, fixedWindow, memoryStore } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { dashboard } from '@weir/dashboard/express'
import { throttle } from '@weir/express'
import { manualClock } from '@weir/testing'
import express from 'express'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { blocksOf, PACKAGE, pages } from './pages.ts'

// The code of the guide, in a file outside the packages' sources, which imports only public names.
const page = pages().find(({ path }) => path.endsWith('custom-algorithm.md'))
const [example, contract] = (page === undefined ? [] : blocksOf(page)).filter(({ info }) => info === 'ts check')
const directory = join(PACKAGE, 'dist', 'custom-algorithm')
mkdirSync(directory, { recursive: true })
writeFileSync(join(directory, 'every-second.ts'), example?.code ?? '')
const declared = 'declare function everySecond(): Algorithm'
writeFileSync(join(directory, 'contract.ts'), `import { everySecond } from './every-second.ts'\n${contract?.code.replace(declared, '')}`)

let everySecond: () => Algorithm

beforeAll(async () => {
  everySecond = ((await import(join(directory, 'every-second.ts'))) as { everySecond: () => Algorithm }).everySecond
})

// Defines the tests of the contract.
await import(join(directory, 'contract.ts'))

describe('the algorithm of the guide', () => {
  test('works in Express over HTTP, with header fields, snapshot and dashboard', async () => {
    const limit = throttle({
      key: 'ip',
      limit: 1,
      interval: '1h',
      coordination: 'local',
      algorithm: everySecond(),
      headers: ['draft-11', 'legacy'],
    })
    const app = express()
    app.use('/weir', dashboard(limit.throttler, { authorize: () => true }))
    app.use(limit)
    app.get('/', (_, res) => void res.send('hello'))
    const server = createServer(app)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      server.closeAllConnections()
      server.close()
      await limit.throttler.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

    const answers: Response[] = []
    for (let i = 0; i < 4; i++) answers.push(await fetch(url))
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 200, 429])
    expect(answers[0]?.headers.get('ratelimit-policy')).toContain('q=1;w=3600')
    expect(answers[0]?.headers.get('ratelimit')).toMatch(/r=0;t=(3600|3599)/)
    expect(Number(answers[1]?.headers.get('retry-after'))).toBeGreaterThan(3_500)

    expect(snapshot(limit.throttler)).toMatchObject({
      policies: [{ algorithm: 'every-second', coordination: 'local', keys: 1, allowed: 2, rejected: 2 }],
      top: [],
    })
    await fetch(url)
    expect(snapshot(limit.throttler).top).toMatchObject([{ key: '127.0.0.1', used: 1, own: 1, limit: 1 }])

    const found = await fetch(`${url}/weir/find`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Weir-Dashboard': '1' },
      body: JSON.stringify({ key: '127.0.0.1' }),
    })
    expect(await found.json()).toMatchObject({ parts: [{ reason: 'limit', limit: 1, remaining: 0 }] })
    const events = (await fetch(`${url}/weir/events`)).body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('event: view') || !text.endsWith('\n\n')) text += (await events?.read())?.value ?? ''
    await events?.cancel()
    expect(text).toContain('"algorithm":"every-second"')
  })

  test('goes with other policies: what one rejects is not counted at the other', () => {
    const throttler = createThrottler({
      clock: manualClock(),
      policies: [
        { name: 'half', limit: 1, interval: '1m', coordination: 'local', algorithm: everySecond() },
        { name: 'all', limit: 2, interval: '1m', coordination: 'local', algorithm: fixedWindow() },
      ],
    })
    const decide = () => throttler.check('a').parts.map(({ reason }) => reason)
    expect([decide(), decide(), decide(), decide(), decide()]).toEqual([
      ['ok', 'ok'],
      ['limit', 'ok'],
      ['ok', 'ok'],
      ['limit', 'limit'],
      ['ok', 'limit'],
    ])
  })

  test('is rejected by name where counts are to be shared', () => {
    const policy = { limit: 1, interval: '1m', algorithm: everySecond() } as const
    const making = (coordination?: 'background' | 'periodic') => () =>
      createThrottler({ store: memoryStore(), policies: [{ ...policy, ...(coordination && { coordination }) }] })
    // The guide shows the first message.
    expect(page?.text).toContain(
      'Option "coordination" is "background"; everySecond() supports "local". Use one of those, or fixedWindow() for "background".',
    )
    expect(making('background')).toThrow(
      'Option "coordination" is "background"; everySecond() supports "local". Use one of those, or fixedWindow() for "background".',
    )
    expect(making('periodic')).toThrow('everySecond() supports "local"')
    expect(making()).toThrow('everySecond() can\'t sync in the background, the default with a store. Set "coordination" to "local"')
  })
})
