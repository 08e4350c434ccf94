import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '@weir/tooling/bundle'
import { afterAll, beforeAll, expect, test } from 'vitest'

// Code that is loaded later must not need a compiler, because that is a process and needs descriptors too.
let folder: string
beforeAll(async () => {
  folder = await bundlePrograms(fileURLToPath(new URL('../..', import.meta.url)), ['test/http/fixtures/paced-server.ts'], [], true)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** Statuses of requests that are made at once, and the time that they took. */
async function requests(port: number, many: number): Promise<{ readonly statuses: readonly number[]; readonly took: number }> {
  const began = performance.now()
  const responses = await Promise.all(Array.from({ length: many }, () => fetch(`http://127.0.0.1:${port}/`)))
  return { statuses: responses.map(({ status }) => status), took: performance.now() - began }
}

test.skipIf(process.platform === 'win32')(
  'a client that takes all descriptors before the first request is held ends no pace: not then, and not once it has gone',
  async () => {
    const node = ['-c', 'ulimit -n 300; exec "$0" "$@"', process.execPath, `${folder}/paced-server.mjs`]
    const server = spawn('sh', node, { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    server.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
    const sockets: Socket[] = []
    try {
      const [line] = (await once(server.stdout, 'data')) as [Buffer]
      const port = Number(line.toString())
      for (let i = 0; i < 350; i++)
        sockets.push(
          connect(port, '127.0.0.1')
            .on('error', () => {})
            .resume(),
        )
      // A server without descriptors closes connections that it can't accept.
      await Promise.race(sockets.map((socket) => once(socket, 'close')))
      // The sockets that were accepted first send requests.
      const began = performance.now()
      const asking = sockets.slice(0, 5)
      const answers = asking.map(async (socket) => {
        socket.write(REQUEST)
        const [answer] = (await once(socket, 'data')) as [Buffer]
        return answer.toString().slice(9, 12)
      })
      expect(await Promise.all(answers)).toEqual(['200', '200', '200', '200', '200'])
      expect(performance.now() - began).toBeGreaterThan(4 * 50 - 10)
      for (const socket of sockets) socket.destroy()
      await expect.poll(() => requests(port, 6), { timeout: 20_000 }).toMatchObject({ statuses: [200, 200, 200, 200, 200, 200] })
      await new Promise((resolve) => setTimeout(resolve, 500))
      const { statuses, took } = await requests(port, 6)
      expect(statuses).toEqual([200, 200, 200, 200, 200, 200])
      expect(took).toBeGreaterThan(5 * 50 - 10)
      await expect.poll(() => said.match(/WEIR_NOT_LOADED/g)).toHaveLength(1)
    } finally {
      for (const socket of sockets) socket.destroy()
      server.kill('SIGKILL')
    }
  },
  60_000,
)
