import { expect, test } from 'vitest'
import { BASE, relocatedNowhere, relocatedPage, relocatedProgram } from '../../src/site/relocatable.ts'

/** Evaluates an expression of a program on a page whose base is `/a/b/`. */
function evaluated(expression: string): unknown {
  return new Function('__weirBase', `return ${relocatedProgram(`(${expression})`)}`)('/a/b/')
}

test.each([
  [`"${BASE}"`, '/a/b/'],
  [`'${BASE}'.length`, 5],
  [`{ x: "${BASE}assets/x.js" }.x`, '/a/b/assets/x.js'],
  [`'<a href="${BASE}x">"${BASE}"</a>'`, '<a href="/a/b/x">"/a/b/"</a>'],
  [`\`\${1}${BASE}x\${"${BASE}"}\``, '1/a/b/x/a/b/'],
  ['"nothing"', 'nothing'],
])('in a program %s becomes what the page has found', (expression, value) => {
  expect(evaluated(expression)).toEqual(value)
})

test('a page refers to what lies above it', () => {
  const html = `<head></head><a href="${BASE}guides/x.html">x</a><img src="${BASE}y.svg">`
  const page = relocatedPage(html, '../')
  expect(page).toContain('<a href="../guides/x.html">x</a><img src="../y.svg">')
  expect(page).toContain('new URL("../",location.href).pathname')
})

test.each([
  ['/some/where/nothing', '/some/where/'],
  ['/some/where/guides/nothing.html', '/some/where/'],
  ['/guides/of/ours/guides/deep/nothing.html', '/guides/of/ours/'],
  ['/nothing', '/'],
])('the page for addresses that lead nowhere, shown at %s, finds the top of the site: %s', (pathname, top) => {
  const html = relocatedNowhere(`<head></head><a href="${BASE}x.html">x</a>`, ['assets', 'guides'])
  expect(html).toContain('<a href="./x.html">x</a>')
  const [, program = ''] = /<script>(.*?)<\/script>/.exec(html) ?? []
  const base = { href: '' }
  const document = { createElement: () => base, head: { appendChild: () => base } }
  const found = new Function('location', 'document', `${program};return __weirBase`)({ pathname }, document)
  expect([found, base.href]).toEqual([top, top])
})
