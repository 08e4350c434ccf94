import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { roomsOf, roomsOfCore } from '../../src/docs/rooms.ts'
import { ROOT } from './pages.ts'

const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
const links = [...page.matchAll(/\[(`?)([^\]`]+)\1\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, code = '', text = '', target = '']) => ({
  text,
  isCode: code !== '',
  path: join('docs', target),
}))
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly scripts: Record<string, string> }

test('every file that the page links exists', () => {
  expect(links.length).toBeGreaterThan(80)
  expect(links.map(({ path }) => path).filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('a link that shows a path leads to that path', () => {
  const wrong = links.filter(({ text, isCode, path }) => isCode && /\.\w+$/.test(text) && !`/${path}`.endsWith(`/${text}`))
  expect(wrong).toEqual([])
})

test('every room that the page names exists', () => {
  const rooms = readdirSync(join(ROOT, 'packages/core/src'))
  const named = [...page.matchAll(/`(\w+)\/`/g)].map(([, room = '']) => room)
  expect(named.filter((room) => !rooms.includes(room))).toEqual([])
})

test('the drawing of the rooms agrees with rooms.json; if not, run `pnpm charts rooms`', () => {
  const [, drawn] = /<!-- table:rooms -->\n\n([\s\S]*?)\n\n<!-- \/table -->/.exec(page) ?? []
  expect(drawn).toBe(roomsOfCore())
})

test('the drawing leaves out arrows that follow from others, and needs a purpose for each room', () => {
  const rooms = { roof: ['ground', 'middle'], middle: ['ground'], ground: [] }
  const drawn = roomsOf(rooms, {}, { roof: 'a', middle: 'b', ground: 'c' })
  expect(drawn).toContain('roof --> middle')
  expect(drawn).not.toContain('roof --> ground')
  expect(() => roomsOf(rooms, {}, {})).toThrow('Room "roof" has no purpose.')
})

test('every command that the page names exists', () => {
  const bench = readFileSync(join(ROOT, 'packages/bench/src/main.ts'), 'utf8')
  for (const [, command = '', subject] of page.matchAll(/pnpm (\w+)(?: (\w+))?/g)) {
    expect(Object.keys(scripts)).toContain(command)
    if (command === 'bench') expect(bench).toMatch(new RegExp(`^ {2}${subject}: async`, 'm'))
  }
})

test('each invariant names the suite that proves it', () => {
  const [, rows = ''] = /^## Invariants\n([\s\S]*?)^## /m.exec(page) ?? []
  const invariants = rows.split('\n').filter((line) => line.startsWith('| ') && !line.includes('proved by'))
  expect(invariants).toHaveLength(10)
  expect(invariants.filter((line) => !line.includes('.test.ts)'))).toEqual([])
})

test('the page stays short', () => {
  const words = page
    .replaceAll(/```mermaid[\s\S]*?```/g, '')
    .split(/\s+/)
    .filter((word) => /\w/.test(word))
  expect(words.length).toBeLessThanOrEqual(2_500)
})
