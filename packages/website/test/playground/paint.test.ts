import { describe, expect, test } from 'vitest'
import { type Brush, SvgBrush } from '../../src/playground/picture/brush.ts'
import { Film } from '../../src/playground/picture/film.ts'
import { type Frame, groundOf, paint, paintGround } from '../../src/playground/picture/paint.ts'
import type { LanesOutcome } from '../../src/playground/runs/lanes.ts'
import { run } from '../../src/playground/runs/run.ts'
import { readAddress } from '../../src/playground/settings/settings.ts'

const palette = { ink: 'ink', soft: 'soft', line: 'line', track: 'track', ok: 'ok', no: 'no', warn: 'warn', accent: 'accent' }
const NODES = 12

/** Counts drawing calls and shapes. */
class Counter implements Brush {
  calls = 0
  rectangles = 0
  circles = 0
  texts = 0
  rects(_color: string, list: readonly number[]): void {
    this.calls++
    this.rectangles += list.length / 4
  }
  dots(_color: string, _radius: number, list: readonly number[]): void {
    this.calls++
    this.circles += list.length / 2
  }
  frame(): void {
    this.calls++
  }
  fence(): void {
    this.calls++
  }
  text(): void {
    this.calls++
    this.texts++
  }
}

async function frameOf(address: string): Promise<(time: number) => Frame> {
  const film = new Film((await run(readAddress(address))) as LanesOutcome)
  return (time) => ({ film, time, speed: 1, width: 1000, palette, still: false })
}

describe('twelve processes in a flood', async () => {
  const at = await frameOf(`?scene=limit&nodes=${NODES}&load=20&limit=500&interval=2`)

  test('need few drawing calls, with any number of requests', () => {
    for (let time = 100; time < 6000; time += 100) {
      const counter = new Counter()
      paint(counter, at(time))
      // A frame and a word for each highlighted rejection, and one call per colour.
      expect(counter.calls).toBeLessThanOrEqual(2 * NODES + 10)
      // Adjacent requests become one mark. Each lane has a bar, the units of others, the rejection, and marks within 140 pixels.
      expect(counter.rectangles).toBeLessThanOrEqual(NODES * (3 + 50) + 1)
    }
  })

  test('keep the same ground while nothing changes', () => {
    const grounds = new Set(Array.from({ length: 60 }, (_, step) => groundOf(at(step * 100))))
    expect(grounds.size).toBe(1)
    const counter = new Counter()
    paintGround(counter, at(0))
    expect(counter.texts).toBe(NODES + 1)
  })
})

test('the ground changes with an outage, and back again', async () => {
  const at = await frameOf('?scene=outage&limit=50&interval=2&nodes=3&from=0.5&until=1.5')
  const grounds = Array.from({ length: 300 }, (_, step) => groundOf(at(step * 20)))
  // The outage starts and ends, and each of the three processes switches twice. Some of these changes may coincide.
  const changes = grounds.filter((ground, index) => ground !== grounds[index - 1]).length
  expect(changes).toBeGreaterThanOrEqual(4)
  expect(changes).toBeLessThanOrEqual(10)
  expect(grounds.at(-1)).toBe(grounds[0])
})

test('a moment as SVG has the words of the canvas', async () => {
  const at = await frameOf('?scene=limit&nodes=3&limit=50&interval=2')
  const brush = new SvgBrush()
  paintGround(brush, at(1900))
  paint(brush, at(1900))
  const svg = String(brush)
  for (const word of ['process 1', 'process 3', 'the limit', 'store: 5']) expect(svg).toContain(`>${word}`)
  expect(svg).not.toMatch(/NaN|undefined|Infinity/)
})
