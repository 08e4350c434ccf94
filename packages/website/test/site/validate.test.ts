import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { faultsOf } from '../../src/site/validate.ts'

const directory = mkdtempSync(join(tmpdir(), 'weir-site-test-'))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function faults(body: string): Promise<string[]> {
  mkdirSync(join(directory, 'a'), { recursive: true })
  const page = (content: string): string => `<!DOCTYPE html><html lang="en"><head><title>t</title></head><body>${content}</body></html>`
  writeFileSync(join(directory, 'index.html'), page('<h1 id="top">t</h1>'))
  writeFileSync(join(directory, 'a/b.html'), page(body))
  return faultsOf(directory)
}

test('a site whose links lead somewhere has no faults', async () => {
  expect(await faults('<a href="../index.html#top">t</a><a href="../">t</a><a href="https://x.test">x</a>')).toEqual([])
})

test.each([
  ['<a href="c.html">c</a>', 'c.html leads nowhere'],
  ['<img src="x.svg" alt="x">', 'x.svg leads nowhere'],
  ['<a href="../index.html#bottom">t</a>', 'leads to no heading'],
  ['<a href="#bottom">t</a>', 'leads to no heading'],
  ['<img src="https://x.test/y.png" alt="y">', 'from outside'],
  ['<img src="//x.test/y.png" alt="y">', 'from outside'],
  ['<p><div>x</div></p>', 'a/b.html:1'],
  ['<i id="a">x</i><i id="a">y</i>', 'a/b.html:1'],
])('%s is a fault', async (body, fault) => {
  expect((await faults(body)).join('\n')).toContain(fault)
})
