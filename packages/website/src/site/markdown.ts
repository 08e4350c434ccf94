import MagicString from 'magic-string'
import type { Code, Definition, Heading, Image, Link, Root, RootContent } from 'mdast'
import { toString as textOf } from 'mdast-util-to-string'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'
import { visit } from 'unist-util-visit'

const parser = unified().use(remarkParse).use(remarkGfm)

/** The text of a Markdown page, and the same text with links to other targets. */
export class Markdown {
  readonly #text: MagicString
  readonly #tree: Root

  constructor(text: string) {
    this.#text = new MagicString(text)
    this.#tree = parser.parse(text)
  }

  /** The first heading. */
  get title(): string {
    const heading = this.#tree.children.find((node): node is Heading => node.type === 'heading')
    return heading === undefined ? '' : textOf(heading)
  }

  /** The first sentence of the first paragraph with text, as one line. */
  get summary(): string {
    const paragraph = this.#tree.children.find((node) => node.type === 'paragraph' && textOf(node) !== '')
    const text = paragraph === undefined ? '' : textOf(paragraph).replace(/\s+/g, ' ')
    return /^.*?[.!?:](?= |$)/.exec(text)?.[0].replace(/:$/, '.') ?? text
  }

  /** Changes the target of each relative link to the result of `to`. If the result is undefined, the link becomes plain text. */
  relink(to: (url: string) => string | undefined): this {
    visit(this.#tree, ['link', 'image', 'definition'], (node) => {
      const link = node as Link | Image | Definition
      if (/^([a-z]+:|#|\/\/)/i.test(link.url)) return
      const [start, end] = rangeOf(link)
      const source = this.#text.original.slice(start, end)
      const target = to(link.url)
      if (target === undefined) {
        if (link.type !== 'link') throw new Error(`The image ${link.url} is not there.`)
        const inner = this.#text.original.slice(link.children[0]?.position?.start.offset, link.children.at(-1)?.position?.end.offset)
        this.#text.update(start, end, inner)
        return
      }
      const at = source.lastIndexOf(link.url)
      if (at < 0) throw new Error(`The link ${source} is written in a way that is not known.`)
      if (target !== link.url) this.#text.update(start + at, start + at + link.url.length, target)
    })
    return this
  }

  /** Removes the words after the language of a code block, because only our own tools understand them. */
  plainCode(): this {
    visit(this.#tree, 'code', (node: Code) => {
      if (node.lang === null || node.lang === undefined || node.meta === null || node.meta === undefined) return
      const [start] = rangeOf(node)
      const line = this.#text.original.indexOf('\n', start)
      const at = this.#text.original.indexOf(` ${node.meta}`, start)
      if (at > start && at < line) this.#text.remove(at, line)
    })
    return this
  }

  /** Links of the first column of the tables below each heading of depth 2: `[heading, [[text, url], …]]`. */
  tables(): [string, [string, string][]][] {
    const found: [string, [string, string][]][] = []
    for (const node of this.#tree.children as RootContent[]) {
      if (node.type === 'heading' && node.depth === 2) found.push([textOf(node), []])
      if (node.type !== 'table') continue
      for (const row of node.children) {
        for (const cell of row.children) {
          const link = cell.children.find((child): child is Link => child.type === 'link')
          if (link !== undefined) found.at(-1)?.[1].push([textOf(link), link.url])
        }
      }
    }
    return found
  }

  toString(): string {
    return this.#text.toString()
  }
}

function rangeOf({ position }: RootContent): [number, number] {
  return [position?.start.offset ?? 0, position?.end.offset ?? 0]
}
