import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const MAIN = 'packages/demo/src/main.ts'

function installed(): boolean {
  try {
    execFileSync('tmux', ['-V'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const missing = installed() ? '' : ' (skipped: no tmux on this machine; Debian: apt-get install tmux)'

describe.skipIf(missing !== '')(`in a real terminal multiplexer${missing}`, () => {
  let folder: string
  let socket: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'weir-tmux-'))
    socket = join(folder, 'socket')
    const start = Date.UTC(2025, 4, 17, 10, 0, 0)
    const lines = Array.from({ length: 1_200 }, (_, second) => {
      const time = new Date(start + second * 1_000).toISOString().slice(11, 19)
      return `${second % 3 === 0 ? '2001:db8::7' : `192.0.2.${second % 5}`} - - [17/May/2025:${time} +0000] "GET /a HTTP/1.1" 200 1 "-" "agent"`
    })
    writeFileSync(join(folder, 'access.log'), `${lines.join('\n')}\n`)
  })
  afterAll(() => {
    try {
      tmux('kill-server')
    } catch {
      // The server has already ended with its last window.
    }
    rmSync(folder, { recursive: true, force: true })
  })

  function tmux(...args: string[]): string {
    return execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  }

  /** The window's text, including lines that have scrolled out of it. */
  const shown = (): string => tmux('capture-pane', '-p', '-S', '-')

  it('a replay is drawn in one place, also when the window changes its size, and its end is left as text', {
    timeout: 180_000,
  }, async () => {
    const command = `cd '${ROOT}'; '${process.execPath}' --conditions=@weir/source --import tsx ${MAIN} --log '${folder}/access.log' --window 20m --speed 120 --limit 30 --store ipc; exec sleep 120`
    tmux('new-session', '-d', '-x', '90', '-y', '26', command)
    tmux('set-option', '-g', 'history-limit', '5000')
    await expect.poll(shown, { timeout: 100_000, interval: 100 }).toContain('busiest clients')
    const sizes = [
      [60, 26],
      [90, 14],
      [40, 30],
      [120, 40],
      [90, 26],
    ] as const
    let frames = 0
    for (const [width, height] of sizes) {
      tmux('resize-window', '-x', `${width}`, '-y', `${height}`)
      for (let i = 0; i < 4; i++) {
        await new Promise((resolve) => setTimeout(resolve, 150))
        const text = shown()
        if (text.includes('Done:')) break
        frames++
        for (const once of ['three gateways, one limit', '│ gateway', '│ together', 'busiest clients', 'live processes'])
          expect(text.split(once).length - 1, `${once} in\n${text}`).toBeLessThanOrEqual(1)
      }
    }
    expect(frames).toBeGreaterThan(10)
    await expect.poll(shown, { timeout: 60_000, interval: 100 }).toContain('every request was answered')
    const end = shown()
    expect(end.split('│ together').length - 1, end).toBe(1)
    expect(end).toContain('busiest clients of the last 1 min')
    expect(tmux('display-message', '-p', '#{alternate_on} #{cursor_flag} #{wrap_flag}').trim()).toBe('0 1 1')
  })
})
