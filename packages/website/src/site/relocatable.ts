import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { parse } from 'acorn'
import { simple } from 'acorn-walk'
import { transform } from 'esbuild'
import MagicString from 'magic-string'

/** VitePress writes the address of the site into everything. This one is replaced by what each page finds itself at. */
export const BASE = '/__weir_base__/'
/** The same, to a program in a page. */
const VARIABLE = '__weirBase'

/** The page that servers show for an address without a page. */
const NOWHERE = '404.html'

/**
 * Makes a built site work from any folder of any server.
 *
 * @param later - names of folders that are still to come
 */
export async function relocate(directory: string, later: readonly string[]): Promise<void> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory() && entry.parentPath === directory).map(({ name }) => name)
  for (const entry of entries.filter((one) => one.isFile())) {
    const file = join(entry.parentPath, entry.name)
    const path = relative(directory, file).replaceAll('\\', '/')
    const up = posix.relative(posix.dirname(path), '.') || '.'
    if (path === NOWHERE) rewrite(file, (text) => relocatedNowhere(text, [...folders, ...later]))
    else if (file.endsWith('.html')) rewrite(file, (text) => relocatedPage(text, `${up}/`))
    else if (file.endsWith('.css')) rewrite(file, (text) => text.replaceAll(BASE, `${up}/`))
    else if (file.endsWith('.js')) {
      const { code } = await transform(relocatedProgram(readFileSync(file, 'utf8')), { minify: true, format: 'esm', target: 'es2022' })
      writeFileSync(file, code)
    }
  }
}

/** @param up the way from the page to the top of the site */
export function relocatedPage(html: string, up: string): string {
  return relocated(html, up, `var ${VARIABLE}=new URL(${JSON.stringify(up)},location.href).pathname`)
}

/**
 * The page for addresses that lead nowhere: it is not told how deep it is, and knows the top of the site as what holds one of its folders.
 *
 * @param folders - names at the top of the site
 */
export function relocatedNowhere(html: string, folders: readonly string[]): string {
  const top = `(/^(.*\\/)(?:${folders.join('|')})\\//.exec(location.pathname)||/^(.*\\/)/.exec(location.pathname))[1]`
  const based = `document.head.appendChild(document.createElement("base")).href=${VARIABLE}`
  return relocated(html, './', `var ${VARIABLE}=${top};${based}`)
}

/** @param finds - a program that finds the top of the site */
function relocated(html: string, up: string, finds: string): string {
  return (
    html
      .replace('<head>', () => `<head><script>${finds}</script>`)
      // The site's own data is JSON in a string of its program.
      .replace(/(window\.__VP_SITE_DATA__=JSON\.parse\(".*?"\))(;?)/, `$1;window.__VP_SITE_DATA__.base=${VARIABLE}$2`)
      .replace(/(href|src)="\/__weir_base__\//g, `$1="${up}`)
  )
}

/** Where the program has the address in a string, it now has what the page has found. */
export function relocatedProgram(code: string): string {
  if (!code.includes(BASE)) return code
  const text = new MagicString(code)
  simple(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), {
    Literal(node) {
      if (typeof node.value !== 'string' || !node.value.includes(BASE)) return
      const parts = node.value.split(BASE).map((part) => JSON.stringify(part))
      text.update(node.start, node.end, `(${parts.join(`+${VARIABLE}+`)})`)
    },
    TemplateElement(node) {
      if (node.value.raw.includes(BASE)) text.update(node.start, node.end, node.value.raw.replaceAll(BASE, `\${${VARIABLE}}`))
    },
  })
  return text.toString()
}

function rewrite(file: string, change: (text: string) => string): void {
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}
