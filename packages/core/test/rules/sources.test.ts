import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import * as yaml from 'yaml'
import { createThrottler } from '../../src/index.ts'
import { type FollowOptions, fileRules, follow, httpRules, type RulesFollower, type RulesSource } from '../../src/rules/index.ts'
import { thrownBy } from '../support/nodes.ts'

const textOf = (version: number, limit: unknown = 5) =>
  `version: ${version}\npolicies:\n  - limit: ${limit}\n    interval: 1m\n    key: ip\n`
const DEADLINE = { timeout: 30_000, interval: 10 }

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'weir-rules-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

interface Started {
  readonly rules: RulesFollower
  readonly warned: string[]
  readonly limit: () => number | undefined
}

async function started(source: RulesSource, options: FollowOptions = {}): Promise<Started> {
  const throttler = createThrottler({ policies: [{ key: 'ip', limit: 99, interval: '1m', coordination: 'local' }] })
  const warned: string[] = []
  throttler.on('warning', ({ error }) => warned.push(error.code))
  const rules = follow(throttler, source, { yaml, ...options })
  onTestFinished(async () => {
    await rules.close()
    await throttler.close()
  })
  await rules.ready
  return { rules, warned, limit: () => throttler.policies[0]?.limit }
}

const holds = ({ rules }: Started, version: number) => vi.waitFor(() => expect(rules.status.version).toBe(version), DEADLINE)

describe('a file', () => {
  test('is followed when it is written in place, and when another is renamed to it', async () => {
    const file = join(folder(), 'rules.yaml')
    writeFileSync(file, textOf(1))
    const node = await started(fileRules(file))
    expect(node.limit()).toBe(5)
    writeFileSync(file, textOf(2, 6))
    await holds(node, 2)
    writeFileSync(`${file}.tmp`, textOf(3, 7))
    renameSync(`${file}.tmp`, file)
    await holds(node, 3)
    expect(node.limit()).toBe(7)
    expect(node.warned).toEqual([])
  })

  test('is followed as a ConfigMap, whose folder is a link that is turned', async () => {
    const root = folder()
    const version = (name: string, text: string) => {
      mkdirSync(join(root, name))
      writeFileSync(join(root, name, 'rules.yaml'), text)
      symlinkSync(name, join(root, '..data.new'))
      renameSync(join(root, '..data.new'), join(root, '..data'))
    }
    version('..1', textOf(1))
    symlinkSync(join('..data', 'rules.yaml'), join(root, 'rules.yaml'))
    const node = await started(fileRules(join(root, 'rules.yaml')))
    expect(node.rules.status.version).toBe(1)
    version('..2', textOf(2))
    await holds(node, 2)
  })

  test('that is torn holds when the rest is there, and never in part', async () => {
    const file = join(folder(), 'rules.yaml')
    writeFileSync(file, textOf(1))
    const node = await started(fileRules(file))
    const seen = new Set<number | undefined>()
    writeFileSync(file, '')
    for (const letter of textOf(2, 12345)) {
      appendFileSync(file, letter)
      await new Promise((resolve) => setImmediate(resolve))
      seen.add(node.limit())
    }
    await holds(node, 2)
    seen.add(node.limit())
    expect([...seen]).toEqual([5, 12345])
  })

  test('that stays torn changes nothing, until it is whole', async () => {
    const file = join(folder(), 'rules.yaml')
    writeFileSync(file, textOf(1))
    const node = await started(fileRules(file))
    writeFileSync(file, textOf(2).slice(0, 20))
    await vi.waitFor(() => expect(node.rules.status.rejected).toBeDefined(), DEADLINE)
    expect(node.limit()).toBe(5)
    writeFileSync(file, textOf(2))
    await holds(node, 2)
    expect(node.rules.status.rejected).toBe(undefined)
  })

  test('that is deleted leaves the rules, and is followed when it is back', async () => {
    const file = join(folder(), 'rules.yaml')
    writeFileSync(file, textOf(1))
    const node = await started(fileRules(file))
    rmSync(file)
    await vi.waitFor(() => expect(node.rules.status.away).toContain('ENOENT'), DEADLINE)
    expect(node.limit()).toBe(5)
    writeFileSync(file, textOf(2))
    await holds(node, 2)
  })

  test('in a folder that is made later is found', async () => {
    const root = folder()
    const node = await started(fileRules(join(root, 'later', 'rules.yaml')))
    expect(node.rules.status.away).toContain('ENOENT')
    mkdirSync(join(root, 'later'))
    writeFileSync(join(root, 'later', 'rules.yaml'), textOf(4))
    await holds(node, 4)
  })

  test('is replaced by one of several who have seen the same', async () => {
    const root = folder()
    const file = join(root, 'rules.yaml')
    const source = fileRules(file)
    expect(await source.replace?.(undefined, textOf(1))).toBe(true)
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, i) => source.replace?.(textOf(1), textOf(i + 2)).catch((error: Error) => error.message)),
    )
    expect(outcomes.filter((one) => one === true)).toHaveLength(1)
    expect(readFileSync(file, 'utf8')).toBe(textOf(outcomes.indexOf(true) + 2))
    expect(readdirSync(root)).toEqual(['rules.yaml'])
    expect(await source.replace?.(textOf(1), textOf(50))).toBe(false)
  })
})

describe('a file that is none', () => {
  test('is not read: a pipe would never answer, and a device never end', async () => {
    const pipe = join(folder(), 'pipe')
    execFileSync('mkfifo', [pipe])
    for (const path of [pipe, '/dev/zero', folder()]) {
      const node = await started(fileRules(path))
      expect(node.rules.status.away).toBe('it is not a regular file')
      await expect(fileRules(path).replace?.(undefined, textOf(1))).rejects.toThrow('it is not a regular file')
    }
  })

  test('is not read beyond 8,000,000 bytes, however large it grows meanwhile', async () => {
    const file = join(folder(), 'rules.yaml')
    writeFileSync(file, '')
    truncateSync(file, 8_000_001)
    expect((await started(fileRules(file))).rules.status.away).toBe('it has more than 8000000 bytes, the most that rules may have')
  })
})

test('a file that does not answer is asked once, however often somebody wants to know', async () => {
  const file = join(folder(), 'rules.yaml')
  writeFileSync(file, textOf(1))
  const source = fileRules(file)
  const { signal } = new AbortController()
  expect(source.read(signal)).toBe(source.read(signal))
  expect(await source.read(signal)).toBe(textOf(1))
  writeFileSync(file, textOf(2))
  expect(await source.read(signal)).toBe(textOf(2))
})

test('a file is also given by its URL, whatever its name', async () => {
  const file = join(folder(), 'rules of ä%20.yaml')
  const source = fileRules(pathToFileURL(file))
  expect(await source.replace?.(undefined, textOf(1))).toBe(true)
  expect(readFileSync(file, 'utf8')).toBe(textOf(1))
  expect((await started(source)).rules.status.version).toBe(1)
})

describe('the file of the last good rules', () => {
  test('comes too late when the source is back before it is read', async () => {
    const lastGood = join(folder(), 'last.yaml')
    writeFileSync(lastGood, textOf(1))
    let changed = () => {}
    let reads = 0
    const node = await started(
      {
        name: 'the test',
        interval: 60_000,
        read: async () => {
          if (reads++ > 0) return textOf(2)
          changed()
          throw new Error('not yet')
        },
        watch: (tell) => {
          changed = tell
          return () => {}
        },
      },
      { lastGood },
    )
    expect(node.rules.status).toMatchObject({ version: 2, from: 'source' })
  })

  test('starts a node while the source is away, and is no source of its own', async () => {
    const root = folder()
    const [file, lastGood] = [join(root, 'rules.yaml'), join(root, 'last.yaml')]
    writeFileSync(file, textOf(7))
    await started(fileRules(file), { lastGood })
    expect(readFileSync(lastGood, 'utf8')).toBe(textOf(7))

    rmSync(file)
    const later = await started(fileRules(file), { lastGood })
    expect(later.rules.status).toMatchObject({ version: 7, from: 'file' })
    expect(later.limit()).toBe(5)
    writeFileSync(file, textOf(8))
    await holds(later, 8)
    expect(later.rules.status).toMatchObject({ from: 'source', away: undefined })
  })

  test('starts a node while the source holds what is rejected, which is still told', async () => {
    const root = folder()
    const [file, lastGood] = [join(root, 'rules.yaml'), join(root, 'last.yaml')]
    writeFileSync(lastGood, textOf(7))
    writeFileSync(file, textOf(8, 'many'))
    const node = await started(fileRules(file), { lastGood })
    expect(node.rules.status).toMatchObject({ version: 7, from: 'file', rejected: { version: 8 } })
    expect(readFileSync(lastGood, 'utf8')).toBe(textOf(7))
  })

  test('that is bad itself leaves the policies of the code', async () => {
    const root = folder()
    const lastGood = join(root, 'last.yaml')
    writeFileSync(lastGood, 'version: [')
    const node = await started(fileRules(join(root, 'none.yaml')), { lastGood })
    expect(node.limit()).toBe(99)
    expect(node.warned).toEqual(['WEIR_WARN_RULES_SOURCE', 'WEIR_RULES_REJECTED'])
  })

  test('is not read where it is no file: a pipe would never answer', async () => {
    const root = folder()
    const lastGood = join(root, 'pipe')
    execFileSync('mkfifo', [lastGood])
    const node = await started(fileRules(join(root, 'none.yaml')), { lastGood })
    expect(node.limit()).toBe(99)
    expect(node.warned).toEqual(['WEIR_WARN_RULES_SOURCE', 'WEIR_WARN_RULES_SOURCE'])
  })

  test('that several processes keep at once is whole, and nothing is left beside it', async () => {
    const root = folder()
    const [file, lastGood] = [join(root, 'rules.yaml'), join(root, 'last.yaml')]
    writeFileSync(file, textOf(1))
    const nodes = await Promise.all(Array.from({ length: 20 }, () => started(fileRules(file), { lastGood })))
    expect(nodes.flatMap(({ warned }) => warned)).toEqual([])
    expect(readFileSync(lastGood, 'utf8')).toBe(textOf(1))
    expect(readdirSync(root).sort()).toEqual(['last.yaml', 'rules.yaml'])
  })

  test('rests once close has resolved, and close waits for nobody who does not answer', async () => {
    const root = folder()
    const [file, lastGood] = [join(root, 'rules.yaml'), join(root, 'last.yaml')]
    writeFileSync(file, textOf(1))
    const node = await started(fileRules(file), { lastGood })
    for (let version = 2; version < 8; version++) {
      writeFileSync(file, textOf(version))
      await holds(node, version)
    }
    await node.rules.close()
    expect(readFileSync(lastGood, 'utf8')).toBe(textOf(7))
    expect(readdirSync(root).sort()).toEqual(['last.yaml', 'rules.yaml'])

    const throttler = createThrottler({ policies: [{ key: 'ip', limit: 99, interval: '1m', coordination: 'local' }] })
    onTestFinished(() => throttler.close())
    let given: AbortSignal | undefined
    const silent = follow(
      throttler,
      {
        name: 'nobody',
        interval: 60_000,
        read: (signal) => {
          given = signal
          return new Promise(() => {})
        },
      },
      { yaml, lastGood, timeout: '10m' },
    )
    await silent.close()
    await silent.ready
    expect(given?.aborted).toBe(true)
    // After `close`, the rules do not come from the file either.
    expect(silent.status.version).toBeUndefined()
  })

  test('that can not be written is no reason to stop', async () => {
    const root = folder()
    writeFileSync(join(root, 'rules.yaml'), textOf(1))
    const node = await started(fileRules(join(root, 'rules.yaml')), { lastGood: join(root, 'none', 'last.yaml') })
    expect(node.limit()).toBe(5)
    expect(node.warned).toEqual(['WEIR_WARN_RULES_SOURCE'])
  })
})

describe('an address', () => {
  async function server(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
    const made = createServer(answer).listen(0, '127.0.0.1')
    onTestFinished(() => {
      made.closeAllConnections()
      made.close()
    })
    await vi.waitFor(() => expect(made.listening).toBe(true), DEADLINE)
    return `http://127.0.0.1:${(made.address() as AddressInfo).port}/rules?token=secret`
  }

  test('is asked with the tag of its last answer, and sends what has changed only', async () => {
    let version = 1
    const asked: unknown[] = []
    const url = await server((request, response) => {
      const tag = request.headers['if-none-match']
      asked.push([tag, request.headers.authorization])
      if (tag === `"${version}"`) response.writeHead(304).end()
      else response.writeHead(200, { etag: `"${version}"` }).end(textOf(version))
    })
    const source = httpRules(url, { interval: 100, headers: { authorization: 'Bearer x' } })
    expect(source.name).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/rules$/)
    const node = await started(source)
    expect(node.rules.status.version).toBe(1)
    await vi.waitFor(() => expect(asked.length).toBeGreaterThan(2), DEADLINE)
    version = 2
    await holds(node, 2)
    expect(asked.slice(0, 2)).toEqual([
      [undefined, 'Bearer x'],
      ['"1"', 'Bearer x'],
    ])
    expect(node.warned).toEqual([])
  })

  test.each<[string, (response: ServerResponse) => void, string]>([
    ['answers with an error', (response) => response.writeHead(503).end('busy'), 'it answers 503'],
    ['sends too much', (response) => flood(response), 'it sends more than 8000000 bytes'],
    ['never answers', () => {}, 'it did not answer within 300 ms'],
    ['never ends', (response) => response.writeHead(200).write('version: 1'), 'it did not answer within 300 ms'],
    ['hangs up', (response) => response.destroy(), 'other side closed'],
  ])('that %s changes nothing', async (name, answer, away) => {
    const url = await server((_, response) => answer(response))
    const node = await started(httpRules(url), { timeout: name.startsWith('never') ? 300 : '60s' })
    expect(node.rules.status).toMatchObject({ version: undefined, away })
    expect(node.limit()).toBe(99)
  })

  test('is followed through redirections of its own origin, with its header fields', async () => {
    const asked: unknown[] = []
    const url = await server(({ url = '', headers }, response) => {
      asked.push([url, headers['x-token']])
      const to = { '/rules?token=secret': '/moved', '/moved': `http://me:secret@${headers.host}/rules.yaml` }[url]
      if (to === undefined) response.end(textOf(1))
      else response.writeHead(307, { location: to }).end('moved')
    })
    const node = await started(httpRules(url, { headers: { 'x-token': 'secret' } }))
    expect(node.rules.status).toMatchObject({ version: 1, away: undefined })
    const paths = ['/rules?token=secret', '/moved', '/rules.yaml']
    expect(asked).toEqual(paths.map((path) => [path, 'secret']))
  })

  test.each([301, 302, 303, 307, 308])('is not followed to another origin, which gets no request, by status %i', async (status) => {
    let reached = false
    const elsewhere = await server((_, response) => {
      reached = true
      response.end(textOf(1))
    })
    const url = await server((_, response) => response.writeHead(status, { location: elsewhere }).end())
    const node = await started(httpRules(url, { headers: { 'x-token': 'secret' } }))
    const { origin } = new URL(elsewhere)
    const away = `it redirects to another origin, ${origin}. If you trust it, pass that address to httpRules()`
    expect(node.rules.status).toMatchObject({ version: undefined, away })
    expect(node.warned).toEqual(['WEIR_WARN_RULES_SOURCE'])
    expect(node.limit()).toBe(99)
    expect(reached).toBe(false)
  })

  test.each([
    ['in a circle', '/rules', 'it redirects more than 5 times'],
    ['to no address', 'http://', 'it redirects to an invalid address'],
    ['to no place', undefined, 'it answers 302'],
  ])('that redirects %s changes nothing', async (_, location, away) => {
    const url = await server((_, response) => response.writeHead(302, location === undefined ? {} : { location }).end())
    const node = await started(httpRules(url))
    expect(node.rules.status).toMatchObject({ version: undefined, away })
  })

  function flood(response: ServerResponse): void {
    const piece = Buffer.alloc(1 << 20, ' ')
    const more = () => {
      while (!response.destroyed && response.write(piece));
      response.once('drain', more)
    }
    response.on('error', () => {})
    more()
  }

  test('may hold a name and a password, which are sent and told to nobody', async () => {
    const asked: unknown[] = []
    const url = new URL(
      await server((request, response) => {
        asked.push(request.headers.authorization)
        response.end(textOf(1))
      }),
    )
    url.username = 'me'
    url.password = 'p@ss%zz'
    const source = httpRules(url)
    expect(source.name).not.toMatch(/me|p@ss|p%40ss/)
    const node = await started(source)
    expect(node.rules.status).toMatchObject({ version: 1, away: undefined })
    expect(asked).toEqual([`Basic ${Buffer.from('me:p@ss%zz').toString('base64')}`])
  })

  test('is not told where it is wrong, since it may hold a password; nor are header fields', () => {
    for (const make of [
      () => httpRules('htp://me:secret@host/'),
      () => httpRules('http://me:secret@ho st/'),
      () => httpRules('http://host', { headers: { authorization: 'Bearer sec\nret secret' } }),
      () => httpRules('http://host', { headers: { authorization: 'Bearer secret \u{1f600}' } }),
    ]) {
      const error = thrownBy(make)
      expect(error).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
      expect(`${error?.stack} ${error?.cause}`).not.toContain('secret')
    }
  })

  test('must be one', () => {
    for (const bad of ['rules.json', 'file:///rules.json', ''])
      expect(thrownBy(() => httpRules(bad))).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
    expect(thrownBy(() => httpRules('http://x', { interval: 5 }))).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
    expect(thrownBy(() => httpRules('http://x', { every: 5 } as never))).toMatchObject({ code: 'WEIR_UNKNOWN_OPTION' })
    for (const bad of ['', 5, new URL('http://x/rules.json')])
      expect(thrownBy(() => fileRules(bad as never))).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  })
})
