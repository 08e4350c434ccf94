import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { embeddedAddress, STILLS } from '../../src/playground/command/scenes.ts'
import { anchorOf, SCENES } from '../../src/playground/settings/scenes.ts'
import { readAddress, writeAddress } from '../../src/playground/settings/settings.ts'
import { serve, unserve } from './browser.ts'

const GUIDE = readFileSync(new URL('../../../../docs/guides/try-it.md', import.meta.url), 'utf8')
const sections = GUIDE.split(/^(?=## )/m)
let root = ''
beforeAll(async () => {
  root = await serve()
})
afterAll(unserve)

test.each(SCENES.map((scene) => [scene.name, scene] as const))(
  'the guide contains the promise of each scene, and its test: %s',
  (_, scene) => {
    const section = sections.find((text) => text.startsWith(`## ${scene.title}\n`))
    expect(section).toContain(`\n${scene.promise}\n`)
    expect(section).toContain(`Tested by \`${scene.tested}\``)
    expect(anchorOf(scene)).toMatch(/^[a-z]+(-[a-z]+)*$/)
  },
)

test('the linked guide is served beside the page', async () => {
  expect(await (await fetch(`${root}guides/try-it.html`)).text()).toBe(GUIDE)
})

test('the guides have addresses as the page writes them', () => {
  for (const { address } of STILLS) expect(writeAddress(readAddress(address))).toBe(address)
  expect(new URLSearchParams(embeddedAddress(STILLS[0] as (typeof STILLS)[0])).has('embed')).toBe(true)
})
