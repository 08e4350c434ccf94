import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

function start(name: string, password: string): ChildProcess & { readonly stdout: Readable } {
  const program = spawn(
    process.execPath,
    ['--conditions=@weir/source', '--import', 'tsx', fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url))],
    {
      env: { ...process.env, PORT: '0', REDIS_URL: '', NODE_OPTIONS: '', PASSWORD: password },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  onTestFinished(async () => {
    const ended = once(program, 'exit')
    program.kill()
    await ended
  })
  return program
}

/** Signs in, and returns the session's cookie. */
async function signIn(page: string, password: string): Promise<string> {
  const response = await fetch(page, { method: 'POST', redirect: 'manual', body: new URLSearchParams({ password }) })
  expect(response.status).toBe(303)
  return response.headers.getSetCookie()[0]?.replace(/;.*/, '') ?? ''
}

test('without PASSWORD a program makes one and prints it', { timeout: 60_000 }, async () => {
  const program = start('express', '')
  let text = ''
  for await (const chunk of program.stdout.setEncoding('utf8')) {
    text += chunk
    if (text.split('\n').length > 2) break
  }
  const [, page = '', password = ''] = /The dashboard: (\S+)\n.*: (\S+)\n/.exec(text) ?? []
  await signIn(page, password)
})

test.each(['express', 'fastify', 'koa'])('the %s program serves the dashboard beside what it limits', { timeout: 60_000 }, async (name) => {
  const password = 'a password for the test'
  const program = start(name, password)
  const [line] = (await once(createInterface({ input: program.stdout }), 'line')) as [string]
  const page = line.replace('The dashboard: ', '')
  expect(await (await fetch(page)).text()).toContain('<title>Sign in')
  const headers = { cookie: await signIn(page, password) }
  expect(await (await fetch(page, { headers })).text()).toContain('<title>Weir</title>')
  const root = new URL('/', page)
  // The requests start within one minute, because a minute's boundary would split them into two intervals.
  const left = 60_000 - (Date.now() % 60_000)
  if (left < 10_000) await setTimeout(left + 50)
  let rejected = 0
  for (let i = 0; i < 65; i++) if ((await fetch(root)).status === 429) rejected++
  expect(rejected).toBe(5)
  // A client that has used up its limit can still open the dashboard.
  expect((await fetch(page, { headers })).status).toBe(200)
  const stream = await fetch(new URL('events', page), { headers })
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (!text.includes('"reason":"limit"') && !text.includes('"reason":"cooldown"')) text += (await reader?.read())?.value ?? ''
  await reader?.cancel()
})
