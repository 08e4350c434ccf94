import type { ChoiceControl, Control, NumberControl } from './control.ts'

/** A scene: the promise that it shows, the settings that can be changed, and the suite that proves the promise. */
export interface Scene {
  readonly name: SceneName
  readonly title: string
  readonly promise: string
  readonly tested: string
  readonly controls: readonly Control[]
  /** Whether a visitor can add access logs. They never leave the page, so they are no setting. */
  readonly replaysLogs?: true
}

export type SceneName = 'limit' | 'outage' | 'straddle' | 'stream' | 'far' | 'policy'

const NODES: NumberControl = { kind: 'number', name: 'nodes', label: 'Processes', least: 1, most: 50, step: 1, fallback: 5 }
const LOAD: NumberControl = {
  kind: 'number',
  name: 'load',
  label: 'Offered load, times the limit',
  least: 0.1,
  most: 100,
  step: 0.1,
  fallback: 3,
  unit: '×',
  logarithmic: true,
}
const ROUND_TRIP: NumberControl = {
  kind: 'number',
  name: 'rtt',
  label: 'Round trip to the store',
  least: 0,
  most: 250,
  step: 1,
  fallback: 20,
  unit: 'ms',
}
const LIMIT: NumberControl = {
  kind: 'number',
  name: 'limit',
  label: 'Limit, requests',
  least: 10,
  most: 5000,
  step: 1,
  fallback: 200,
  logarithmic: true,
}
const INTERVAL: NumberControl = {
  kind: 'number',
  name: 'interval',
  label: 'Interval',
  least: 1,
  most: 60,
  step: 1,
  fallback: 10,
  unit: 's',
}
const BALANCING: ChoiceControl = {
  kind: 'choice',
  name: 'balancing',
  label: 'Load balancing',
  choices: [
    ['even', 'even'],
    ['zipf', 'uneven (Zipf)'],
    ['sticky', 'sticky'],
  ],
  fallback: 'even',
}
const SEED: NumberControl = { kind: 'number', name: 'seed', label: 'Seed', least: 1, most: 999_999, step: 1, fallback: 1 }

export const SCENES: readonly Scene[] = [
  {
    name: 'limit',
    title: 'One limit, N processes',
    promise: 'Each process decides in memory, and rejects a key once confirmed counts show that its limit is reached.',
    tested: 'npx -y pnpm accuracy --case 3',
    controls: [NODES, LOAD, ROUND_TRIP, LIMIT, INTERVAL, BALANCING, SEED],
  },
  {
    name: 'outage',
    title: 'Kill Redis',
    promise: 'Without the store, requests are still answered at once. Each process allows its share of the limit.',
    tested: 'npx -y pnpm accuracy --case 14',
    controls: [
      { ...NODES, fallback: 6 },
      { ...LOAD, fallback: 2 },
      { ...ROUND_TRIP, fallback: 2 },
      LIMIT,
      INTERVAL,
      {
        kind: 'choice',
        name: 'fault',
        label: 'Fault',
        choices: [
          ['reject', 'Redis is killed'],
          ['hang', 'Redis hangs'],
          ['empty', 'Redis is killed and loses its data'],
          ['cut', 'half of the processes are cut off'],
          ['none', 'no fault'],
        ],
        fallback: 'reject',
      },
      { kind: 'number', name: 'from', label: 'From interval', least: 0, most: 20, step: 0.01, fallback: 2.3 },
      { kind: 'number', name: 'until', label: 'Until interval', least: 0, most: 20, step: 0.01, fallback: 4.6 },
      {
        kind: 'choice',
        name: 'failMode',
        label: 'While the store is down (failMode)',
        choices: [
          ['share', "'share': by its share"],
          ['open', "'open': allow all"],
          ['closed', "'closed': reject all"],
        ],
        fallback: 'share',
      },
      SEED,
    ],
  },
  {
    name: 'straddle',
    title: 'The straddling attack',
    promise: 'A flood around a boundary of intervals gets twice the limit from a fixed window, but not from a sliding one.',
    tested: 'npx -y pnpm accuracy --case S7',
    controls: [
      { ...NODES, fallback: 3 },
      { ...LOAD, label: 'The attack, times the limit', fallback: 10 },
      { kind: 'number', name: 'lead', label: 'Intervals before the boundary', least: 0, most: 1, step: 0.01, fallback: 0.1 },
      { ...ROUND_TRIP, fallback: 1 },
      { ...LIMIT, most: 1000 },
      INTERVAL,
      SEED,
    ],
  },
  {
    name: 'stream',
    title: 'One stream, every algorithm',
    promise: 'The same requests through every algorithm: which are allowed, and when.',
    tested: 'packages/testing/test/algorithms-keep-the-contract.test.ts',
    controls: [
      {
        kind: 'choice',
        name: 'shape',
        label: 'Requests',
        choices: [
          ['mixed', 'a flood, then twice the pace'],
          ['flood', 'four times the limit'],
          ['steady', 'a little below the limit'],
          ['spikes', 'all at once, each interval'],
          ['random', 'at random, 1.5 × the limit'],
        ],
        fallback: 'mixed',
      },
      { ...LIMIT, least: 5, most: 100, step: 1, fallback: 20 },
      INTERVAL,
      { kind: 'number', name: 'burst', label: 'Burst of buckets', least: 1, most: 100, step: 1, fallback: 8 },
      { kind: 'number', name: 'warmup', label: 'Warm-up', least: 1, most: 60, step: 1, fallback: 10, unit: 's' },
      SEED,
    ],
  },
  {
    name: 'far',
    title: 'Far regions',
    promise: 'Far from the store, processes allow more before they receive the counts of the others. A token bucket pays this back.',
    tested: 'npx -y pnpm accuracy --case B12',
    controls: [
      { ...NODES, fallback: 6 },
      { ...NODES, name: 'far', label: 'Far processes', least: 0, fallback: 6 },
      { ...ROUND_TRIP, label: 'Their round trip', fallback: 100 },
      { ...LOAD, fallback: 20 },
      { ...LIMIT, most: 1000 },
      INTERVAL,
      { kind: 'number', name: 'burst', label: 'Burst of the buckets', least: 10, most: 5000, step: 1, fallback: 200, logarithmic: true },
      SEED,
    ],
  },
  {
    name: 'policy',
    title: 'Your policy',
    promise:
      'Paste a policy: by how much would your cluster exceed the limit, which requests would it reject wrongly, and how much would it cost? Your options are parsed, not executed.',
    tested: 'packages/website/test/playground/policy.test.ts',
    controls: [
      {
        kind: 'text',
        name: 'options',
        label: 'Options of the policy',
        most: 2000,
        rows: 7,
        fallback: "{\n  limit: 300,\n  interval: '1m',\n  algorithm: slidingWindow(),\n}",
      },
      NODES,
      LOAD,
      { ...ROUND_TRIP, fallback: 1 },
      BALANCING,
      SEED,
    ],
    replaysLogs: true,
  },
]

/** The scene with a name. The first one for an unknown name. */
export function sceneOf(name: unknown): Scene {
  return SCENES.find((scene) => scene.name === name) ?? (SCENES[0] as Scene)
}

/** The anchor of a scene in the page that shows its test. */
export function anchorOf({ title }: Scene): string {
  return title
    .toLowerCase()
    .replace(/[^a-z ]/g, '')
    .replaceAll(' ', '-')
}
