import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

test.each(['express', 'fastify', 'koa'])('the %s program serves the page beside what it limits', { timeout: 60_000 }, async (name) => {
  const program = spawn(
    process.execPath,
    ['--conditions=@weir/source', '--import', 'tsx', fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url))],
    {
      env: { ...process.env, PORT: '0', REDIS_URL: '', NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  onTestFinished(async () => {
    const ended = once(program, 'exit')
    program.kill()
    await ended
  })
  const [line] = (await once(createInterface({ input: program.stdout }), 'line')) as [string]
  const page = line.replace('The live page: ', '')
  expect(await (await fetch(page)).text()).toContain('<title>Weir</title>')
  const root = new URL('/', page)
  // Requests that fall on both sides of a minute's boundary are counted in two intervals: start within one.
  const left = 60_000 - (Date.now() % 60_000)
  if (left < 10_000) await setTimeout(left + 50)
  let refused = 0
  for (let i = 0; i < 65; i++) if ((await fetch(root)).status === 429) refused++
  expect(refused).toBe(5)
  // Whoever used up the limit can still look.
  expect((await fetch(page)).status).toBe(200)
  const stream = await fetch(new URL('events', page))
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('"reason":"limit"') && !text.includes('"reason":"cooldown"')) text += (await reader?.read())?.value ?? ''
  await reader?.cancel()
})
