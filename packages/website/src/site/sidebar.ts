import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { Markdown } from './markdown.ts'
import { pages, ROOT } from './pages.ts'

interface Item {
  readonly text: string
  readonly link: string
}

interface Group {
  readonly text: string
  readonly items: readonly Item[]
  readonly collapsed?: boolean
}

/** The tables of the overview, in their order, then the READMEs of packages and examples. */
export function sidebar(): Group[] {
  const overview = new Markdown(readFileSync(join(ROOT, 'docs/README.md'), 'utf8')).tables()
  const recipes = new Markdown(readFileSync(join(ROOT, 'docs/recipes/README.md'), 'utf8')).tables()
  const items = (heading: string): Item[] => itemsOf('docs', overview.find(([text]) => text === heading)?.[1] ?? [])
  const listed = recipes.flatMap(([, links]) => links)
  const read = (room: string): Item[] =>
    pages()
      .filter(({ path }) => path.startsWith(`${room}/`))
      .map(({ path }) => ({ text: nameOf(room, path), link: linkOf(path) }))
  return [
    {
      text: 'Begin',
      items: [{ text: 'Weir at a glance', link: '/start' }, { text: 'Find your question', link: '/overview' }, ...items('Start')],
    },
    ...['Core concepts', 'Traffic shaping', 'Operations', 'Extending', 'Migration'].map((text) => ({
      text,
      items: items(text),
      collapsed: true,
    })),
    { text: 'Recipes', items: itemsOf('docs/recipes', listed).map(({ text, link }) => ({ text: capital(text), link })), collapsed: true },
    { text: 'Reference', items: items('Reference') },
    { text: 'Evidence', items: items('Evidence'), collapsed: true },
    { text: 'Packages', items: read('packages'), collapsed: true },
    { text: 'Examples', items: [{ text: 'Overview', link: '/project/examples' }, ...read('examples')], collapsed: true },
    {
      text: 'Project',
      items: [
        { text: 'Contributing', link: '/project/contributing' },
        { text: 'Architecture', link: '/project/architecture' },
        { text: 'Security', link: '/project/security' },
      ],
      collapsed: true,
    },
  ]
}

/** Links in a page of a folder, as items of the site's pages. */
function itemsOf(folder: string, links: readonly (readonly [string, string])[]): Item[] {
  return links.flatMap(([text, url]) => {
    const source = posix.join(folder, url.split('#')[0] as string)
    const page = pages().find((one) => one.source === source)
    return page === undefined ? [] : [{ text, link: linkOf(page.path) }]
  })
}

function linkOf(path: string): string {
  return `/${path.replace(/\.md$/, '')}`
}

function nameOf(room: string, path: string): string {
  const name = path.slice(room.length + 1, -'.md'.length)
  return room === 'packages' ? `@weir/${name}` : name
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
