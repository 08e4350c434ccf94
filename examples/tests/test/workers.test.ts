import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundleWorker, Workerd } from '@weir/tooling/workerd'
import { expect, it } from 'vitest'

const example = (file: string): string => fileURLToPath(import.meta.resolve(`@weir/example-workers/${file}`))

it('limits the requests of an address over three isolates in workerd', { timeout: 60_000 }, async () => {
  const { durable_objects: objects, compatibility_flags: flags } = JSON.parse(readFileSync(example('wrangler.jsonc'), 'utf8')) as {
    durable_objects: { bindings: { name: string; class_name: string }[] }
    compatibility_flags: string[]
  }
  const classes = Object.fromEntries(objects.bindings.map(({ name, class_name }) => [name, class_name]))
  const workerd = await Workerd.start(await bundleWorker(example('src/index.ts')), 3, classes, { flags })
  try {
    const send = async (isolate: number): Promise<Response> => {
      const headers = { 'cf-connecting-ip': '203.0.113.7' }
      const response = await workerd.fetch(isolate, '/', { headers })
      await response.arrayBuffer()
      return response
    }
    // At most three requests are left in the interval that runs now.
    const responses = [await send(0), await send(0), await send(0), await send(0), await send(0), await send(0), await send(0)]
    expect(responses.map(({ status }) => status)).toContain(429)
    expect(responses[0]?.status).toBe(200)
    expect(responses[0]?.headers.get('ratelimit')).toMatch(/;r=2;/)
    // An isolate that starts may allow a request, because it has no counts of the others yet.
    for (const isolate of [1, 2]) {
      const statuses: number[] = []
      for (let i = 0; i < 7; i++) statuses.push((await send(isolate)).status)
      expect(statuses).toContain(429)
    }
  } finally {
    await workerd.close()
  }
})
