import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import GithubSlugger from 'github-slugger'
import type { TypeNode } from 'typescript/unstable/ast'
import type { PublicOption } from './public-options.ts'
import { type Docstring, pagesOf, ROOT, type Sources } from './sources.ts'
import { typeText } from './type-text.ts'

/** The row of an option on a page. */
export function optionRow({ name, node, docstring }: PublicOption, page: string, sources: Sources): string[] {
  const preset = docstring.tags.find((tag) => tag.name === 'default')?.content
  return [`\`${name}\``, presetText(preset), typeCell(node.type, sources), effectText(docstring, page)]
}

export function typeCell(node: TypeNode, sources: Sources): string {
  return `\`${typeText(node, sources).replaceAll('|', '\\|')}\``
}

/** A value as code, a description as text. */
function presetText(preset: string | undefined): string {
  if (preset === undefined) return 'required'
  const [first = ''] = preset.split('\n\n')
  const text = first.replaceAll('\n', ' ').replace(/^none: .*/, 'none')
  return /^('[^']*'|[\d_]+|true|false|[\w.]+(\(\))?|\{[^}]*\})$/.test(text) && text !== 'none' && text !== 'required'
    ? `\`${text.replaceAll('_', '')}\``
    : text
}

/** The first paragraph of a docstring, and links to the pages that it refers to. */
export function effectText(docstring: Docstring, page: string): string {
  const links = pagesOf(docstring).map((target) => linkTo(target, page))
  return `${firstParagraph(docstring)}${links.length > 0 ? ` See ${links.join(' and ')}.` : ''}`
}

/** Ends at an empty line. A list that follows directly belongs to it. */
export function firstParagraph({ text }: Docstring): string {
  const [first = ''] = text.split('\n\n')
  return first
    .replaceAll(/\n- /g, ' ')
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
}

/** A link from a page, named after the heading or the file. */
function linkTo(target: string, page: string): string {
  const [file = '', anchor] = target.split('#')
  const path = file === page ? '' : relative(dirname(page), file)
  if (anchor === undefined) return `[${file.replaceAll(/^.*\/|\.md$/g, '').replaceAll('-', ' ')}](${path})`
  const headings = readFileSync(join(ROOT, file), 'utf8').matchAll(/^#+ (.*)$/gm)
  const heading = [...headings].map(([, text = '']) => text).find((text) => new GithubSlugger().slug(text) === anchor)
  if (heading === undefined) throw new Error(`No heading of ${file} has the anchor "${anchor}"`)
  return `[${heading.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())}](${path}#${anchor})`
}
