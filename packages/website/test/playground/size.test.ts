import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

const dist = new URL('../../dist/playground/', import.meta.url)

test('all of the page is less than 300 KB, compressed', () => {
  const files = readdirSync(dist)
  expect(files).toEqual(['index.html', 'page.js', 'style.css', 'worker.js'])
  const bytes = files.map((file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length)
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(300 * 1024)
})
