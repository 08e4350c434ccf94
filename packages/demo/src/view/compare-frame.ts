import type { Count } from '../traffic/tally.ts'
import { title } from './cluster-frame.ts'
import type { Colors } from './colors.ts'
import { count, seconds } from './format.ts'

/** The contents of a frame while one of the two coordinations runs. Times are milliseconds. */
export interface CompareView {
  readonly coordination: 'background' | 'central'
  readonly storeText: string
  /** Start of the traffic, since the epoch. 0 while it is unknown. */
  readonly start: number
  readonly total: number
  readonly count: Count
}

export const WAY_TEXTS = {
  background: 'syncs in the background',
  central: 'the store decides each request',
} as const

export function compareFrame({ coordination, storeText, start, total, count: { allowed, rejected } }: CompareView, colors: Colors): string {
  const elapsed = Date.now() - start
  const progress =
    start === 0
      ? 'starting a store, a backend and three gateways, and warming them up'
      : elapsed < 0
        ? `the next interval begins in ${seconds(-elapsed)}`
        : `${seconds(Math.min(elapsed, total))} of ${seconds(total)}, ${count(allowed + rejected)} requests`
  return [
    '',
    title(colors),
    `${colors.dim('store')}  ${storeText}`,
    `${colors.dim('run  ')}  ${coordination === 'background' ? 1 : 2} of 2: ${WAY_TEXTS[coordination]}`,
    `${colors.dim('time ')}  ${progress}`,
    '',
  ].join('\n')
}
