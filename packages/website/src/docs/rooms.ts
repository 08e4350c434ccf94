import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { floorOf } from '@weir/tooling/rooms'
import type { Figure } from './figure.ts'
import { tableOf } from './markdown.ts'

const CORE = fileURLToPath(new URL('../../../core', import.meta.url))

/** The purpose of each room of core. A room without one fails the drawing. */
const PURPOSES: Readonly<Record<string, string>> = {
  report: 'errors, events, reasons, log lines, calls of user functions',
  time: "clocks, timers, the store's time, intervals of the Unix epoch, imports that are retried",
  options: 'reads option values: durations, intervals, calendars',
  keys: 'the table of keys, blocks, bounded key strings',
  store: 'the contract between processes and stores; leases and shapes as pure code',
  algorithms: 'the meaning of a limit over time: interfaces, and a folder for each algorithm',
  counting: 'meters of processes that count together, by the shape of an algorithm: background, periodic, leases',
  queue: 'requests that wait for their turn; loaded with the first of them',
  decide: 'policies, limiters, the decision of one policy and of several',
  budget: 'units reserved before a call',
  central: 'one step at the store for each request; loaded with the first such policy',
  throttler: 'the object that users create; refunds, manual blocks, delays',
  inspect: 'snapshots, and the status that processes report to each other',
  http: 'a request to keys and costs, a decision to an answer',
  sync: 'the loop that syncs counts in the background, and the link to the store',
  rules: 'policies as data: documents, their check, their sources',
  hub: 'the store in memory',
  ipc: 'the store in the parent process',
}

type Rooms = Readonly<Record<string, readonly string[]>>

/** The rooms of core as a graph and a table by floors. */
export function roomsOf(rooms: Rooms, entries: Readonly<Record<string, string>>, purposes: Readonly<Record<string, string>>): string {
  const floors = [...new Set(Object.keys(rooms).map((room) => floorOf(rooms, room)))].sort((a, b) => b - a)
  const on = (floor: number): string[] => Object.keys(rooms).filter((room) => floorOf(rooms, room) === floor)
  const graph = [
    'flowchart TD',
    ...floors.flatMap((floor) => [`  subgraph floor${floor}[floor ${floor}]`, ...on(floor).map((room) => `    ${room}`), '  end']),
    ...Object.keys(rooms).flatMap((room) => direct(rooms, room).map((below) => `  ${room} --> ${below}`)),
  ]
  const row = (floor: number) => (room: string) => {
    const purpose = purposes[room]
    if (purpose === undefined) throw new Error(`Room "${room}" has no purpose. Add it in packages/website/src/docs/rooms.ts.`)
    return [String(floor), `\`${room}/\``, entries[room] === undefined ? '' : `\`${entries[room]}\``, purpose]
  }
  const table = tableOf([['floor', 'room', 'entry', 'purpose'], ...floors.flatMap((floor) => on(floor).map(row(floor)))])
  return `\`\`\`mermaid\n${graph.join('\n')}\n\`\`\`\n\nThe graph leaves out arrows that follow from others.\n\n${table}`
}

/** The rooms from which a room imports and that no other room of its list reaches. With all arrows the graph would be unreadable. */
function direct(rooms: Rooms, room: string): readonly string[] {
  const below = rooms[room] ?? []
  return below.filter((target) => !below.some((other) => other !== target && reaches(rooms, other, target)))
}

function reaches(rooms: Rooms, from: string, target: string): boolean {
  return (rooms[from] ?? []).some((next) => next === target || reaches(rooms, next, target))
}

/** The text between the marks of the page, from `rooms.json` and the manifest of core. */
export function roomsOfCore(): string {
  const rooms = JSON.parse(readFileSync(join(CORE, 'rooms.json'), 'utf8')) as Rooms
  const { exports } = JSON.parse(readFileSync(join(CORE, 'package.json'), 'utf8')) as { readonly exports: object }
  const entries = Object.entries(exports).flatMap(([entry, target]: [string, unknown]) => {
    const source = typeof target === 'object' && target !== null ? (target as Record<string, unknown>)['@weir/source'] : undefined
    const [, room] = /^\.\/src\/(\w+)\/index\.ts$/.exec(String(source)) ?? []
    return room === undefined ? [] : [[room, entry] as const]
  })
  return roomsOf(rooms, Object.fromEntries(entries), PURPOSES)
}

export const rooms: Figure = {
  name: 'rooms',
  makes: ['rooms'],
  about: 'the rooms of core by floors, from rooms.json',
  make: async () => ({ tables: { rooms: roomsOfCore() } }),
}
