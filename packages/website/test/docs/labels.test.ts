import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CHROMIUM, launch, MISSING } from '@weir/tooling/browser'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ROOT } from './pages.ts'

const IMAGES = join(ROOT, 'docs/images')

interface Label {
  readonly text: string
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

/** Pixels by which labels may touch, because boxes of letters contain some empty space. */
const TOUCHING = 1

function overlap(a: Label, b: Label): boolean {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left)
  return width > TOUCHING && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > TOUCHING
}

const within = ({ left, right, top, bottom }: Label, picture: Label) =>
  left >= picture.left - TOUCHING &&
  right <= picture.right + TOUCHING &&
  top >= picture.top - TOUCHING &&
  bottom <= picture.bottom + TOUCHING

describe.skipIf(CHROMIUM === undefined)(
  `the pictures of the docs${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 60_000 },
  () => {
    test('no label covers another one or is cut off', async () => {
      const browser = await launch()
      onTestFinished(() => browser.close())
      const page = await browser.newPage()
      const faults: string[] = []
      for (const file of readdirSync(IMAGES).filter((name) => name.endsWith('.svg'))) {
        await page.setContent(readFileSync(join(IMAGES, file), 'utf8'))
        const [picture, ...labels] = await page.evaluate(() =>
          [...document.querySelectorAll('svg:not(svg svg), text')].map((element): Label => {
            const { left, right, top, bottom } = element.getBoundingClientRect()
            return { text: element.textContent ?? '', left, right, top, bottom }
          }),
        )
        if (picture === undefined) throw new Error(`${file} is no picture`)
        for (const [at, label] of labels.entries()) {
          if (!within(label, picture)) faults.push(`${file}: "${label.text}" is cut off`)
          for (const other of labels.slice(at + 1))
            if (overlap(label, other)) faults.push(`${file}: "${label.text}" covers "${other.text}"`)
        }
      }
      expect(faults).toEqual([])
    })
  },
)
