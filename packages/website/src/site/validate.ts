import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { type ConfigData, FileSystemConfigLoader, HtmlValidate } from 'html-validate'
import { type DefaultTreeAdapterMap, parse } from 'parse5'

type Node = DefaultTreeAdapterMap['node']

/** The targets of a page's links, and the ids on the page. */
interface Refs {
  readonly ids: Set<string>
  /** Links for readers. */
  readonly links: string[]
  /** Files that a browser loads. */
  readonly loads: string[]
}

/** Rules for HTML. VitePress preloads its style by `rel="preload stylesheet"`, which browsers support and the rule rejects. */
const RULES: ConfigData = { root: true, extends: ['html-validate:standard'], rules: { 'attribute-misuse': 'off' } }

/** All faults of a built site, one per line. */
export async function faultsOf(directory: string): Promise<string[]> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort()
  const there = new Set(files)
  const pages = new Map(
    files
      .filter((file) => file.endsWith('.html'))
      .map((file): [string, Refs] => [file, refsOf(readFileSync(join(directory, file), 'utf8'))]),
  )
  return [...deadLinks(pages, there), ...outsideRequests(pages), ...(await invalid(directory, [...pages.keys()]))]
}

function deadLinks(pages: ReadonlyMap<string, Refs>, there: ReadonlySet<string>): string[] {
  const faults: string[] = []
  for (const [page, { links, loads }] of pages) {
    for (const url of [...links, ...loads]) {
      if (/^([a-z]+:|\/\/)/i.test(url)) continue
      const [path = '', anchor = ''] = url.replace(/\?.*?(?=#|$)/, '').split('#')
      const joined = path === '' ? page : posix.join(posix.dirname(page), decodeURIComponent(path))
      const target = [joined, posix.join(joined, 'index.html')].find((file) => there.has(file))
      if (target === undefined) faults.push(`${page}: the link ${url} leads nowhere`)
      else if (anchor !== '' && pages.has(target) && !pages.get(target)?.ids.has(decodeURIComponent(anchor)))
        faults.push(`${page}: the link ${url} leads to no heading`)
    }
  }
  return faults
}

function outsideRequests(pages: ReadonlyMap<string, Refs>): string[] {
  return [...pages].flatMap(([page, { loads }]) =>
    loads.filter((url) => /^(https?:)?\/\//i.test(url)).map((url) => `${page}: loads ${url}, from outside`),
  )
}

async function invalid(directory: string, pages: readonly string[]): Promise<string[]> {
  const validator = new HtmlValidate(new FileSystemConfigLoader(RULES))
  const faults: string[] = []
  for (const page of pages) {
    const { results } = await validator.validateFile(join(directory, page))
    for (const { messages } of results)
      for (const { line, ruleId, message } of messages) faults.push(`${page}:${line}: ${message} (${ruleId})`)
  }
  return faults
}

function refsOf(html: string): Refs {
  const refs: Refs = { ids: new Set(), links: [], loads: [] }
  const visit = (node: Node): void => {
    if ('attrs' in node) {
      const attribute = (name: string): string | undefined => node.attrs.find((own) => own.name === name)?.value
      const [id, href, src] = [attribute('id'), attribute('href'), attribute('src')]
      if (id !== undefined) refs.ids.add(id)
      if (href !== undefined) (node.tagName === 'a' ? refs.links : refs.loads).push(href)
      if (src !== undefined) refs.loads.push(src)
    }
    if ('childNodes' in node) for (const child of node.childNodes) visit(child)
  }
  visit(parse(html))
  return refs
}
