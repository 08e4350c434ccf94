import { useEffect, useState } from 'preact/hooks'
import type { Mode } from '../src/protocol.ts'

const MINUTE = 60_000
/** The time ranges of the charts in milliseconds, with their names in the address. */
export const RANGES = { '5': 5 * MINUTE, '10': 10 * MINUTE, '30': 30 * MINUTE } as const
export type Range = keyof typeof RANGES

export const MODES: Readonly<Record<Mode, string>> = { enforced: 'Enforced', 'dry-run': 'Dry run', candidate: 'Candidate' }

const PAGES = ['key', 'policy', 'process'] as const
type PageName = 'overview' | 'rules' | (typeof PAGES)[number]

/** The open page and its settings, all of which are in the address, so that a link shows the same to a colleague. */
export interface Place {
  readonly page: PageName
  /** The page's key, policy or process. */
  readonly name: string
  readonly mode: Mode
  readonly range: Range
  readonly find: string
}

let current: Place = placeOf(location.hash)
const listeners = new Set<(place: Place) => void>()

addEventListener('hashchange', () => {
  current = placeOf(location.hash)
  for (const listener of listeners) listener(current)
  scrollTo(0, 0)
})

export function usePlace(): Place {
  const [place, setPlace] = useState(current)
  useEffect(() => {
    listeners.add(setPlace)
    return () => void listeners.delete(setPlace)
  }, [])
  return place
}

/** Changes settings of the open page. They replace the address, so that "Back" leads to the page before. */
export function set(part: Partial<Pick<Place, 'mode' | 'range' | 'find'>>): void {
  current = { ...current, ...part }
  history.replaceState(null, '', hashOf(current))
  for (const listener of listeners) listener(current)
}

/** The address of a page. Filter and range stay as they are. */
export function addressOf(page: PageName, name = ''): string {
  return hashOf({ ...current, page, name, find: '' })
}

function hashOf({ page, name, mode, range, find }: Place): string {
  const parts = new URLSearchParams()
  if (page === 'rules') parts.set(page, '')
  else if (page !== 'overview') parts.set(page, name)
  if (mode !== 'enforced') parts.set('mode', mode)
  if (range !== '30') parts.set('range', range)
  if (find !== '') parts.set('find', find)
  return `#${parts}`
}

function placeOf(hash: string): Place {
  const parts = new URLSearchParams(hash.slice(1))
  const page = PAGES.find((one) => parts.has(one)) ?? (parts.has('rules') ? 'rules' : 'overview')
  const [mode, range] = [parts.get('mode') ?? '', parts.get('range') ?? '']
  return {
    page,
    name: parts.get(page) ?? '',
    mode: Object.hasOwn(MODES, mode) ? (mode as Mode) : 'enforced',
    range: Object.hasOwn(RANGES, range) ? (range as Range) : '30',
    find: parts.get('find') ?? '',
  }
}
