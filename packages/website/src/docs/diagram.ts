import type { Figure } from './figure.ts'
import { framed } from './svg.ts'

const FILE = 'how-it-works.svg'
const WIDTH = 744
const HEIGHT = 276
const ROW = 80
const TEXT = 'dominant-baseline="middle" font-family="system-ui, sans-serif"'

/** The diagram of the README: processes that decide in memory, and a store that they sync with. */
export const diagram: Figure = {
  name: 'diagram',
  makes: [FILE],
  about: 'how processes and a store work together',
  make: async () => ({
    charts: {
      [FILE]: framed(
        'Three processes count and decide in memory. In the background each of them syncs its counts with Redis, which returns totals and blocks.',
        WIDTH,
        HEIGHT,
        [
          head('way', 'var(--first)'),
          head('sync', 'var(--muted)'),
          note(0, 8, 'on the request path: memory only'),
          note(478, 8, 'in the background, a few times per interval'),
          ...[0, 1, 2].map(processAt),
          '<rect x="596" y="104" width="136" height="72" rx="8" fill="none" stroke="var(--second)" stroke-width="2"/>',
          `<text x="664" y="130" text-anchor="middle" font-size="14" fill="var(--ink)" ${TEXT}>Redis</text>`,
          `<text x="664" y="152" text-anchor="middle" font-size="12" fill="var(--muted)" ${TEXT}>totals, blocks</text>`,
          note(0, HEIGHT - 8, 'If Redis is down, each process continues with its share of the limit.'),
        ].join('\n'),
      ),
    },
  }),
}

function processAt(index: number): string {
  const middle = 60 + ROW * index
  const center = 60 + ROW
  const bend =
    index === 1
      ? `M408 ${middle}H592`
      : `M408 ${middle}H500C545 ${middle} 550 ${center + 24 * (index - 1)} 592 ${center + 20 * (index - 1)}`
  return [
    `<text x="0" y="${middle}" font-size="14" fill="var(--ink)" ${TEXT}>requests</text>`,
    `<path d="M68 ${middle}H130" fill="none" stroke="var(--first)" stroke-width="2" marker-end="url(#way)"/>`,
    `<rect x="134" y="${middle - 25}" width="270" height="50" rx="8" fill="none" stroke="var(--grid)" stroke-width="2"/>`,
    `<text x="150" y="${middle - 9}" font-size="14" fill="var(--ink)" ${TEXT}>process ${index + 1}</text>`,
    note(150, middle + 10, 'count, decide: allow or reject'),
    `<path d="${bend}" fill="none" stroke="var(--muted)" stroke-width="2" stroke-dasharray="5 4" marker-start="url(#sync)" marker-end="url(#sync)"/>`,
  ].join('\n')
}

function note(x: number, y: number, text: string): string {
  return `<text x="${x}" y="${y}" font-size="12" fill="var(--muted)" ${TEXT}>${text}</text>`
}

function head(id: string, color: string): string {
  return `<marker id="${id}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="${color}"/></marker>`
}
