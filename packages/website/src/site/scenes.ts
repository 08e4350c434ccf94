import type { MarkdownRenderer } from 'vitepress'
import { embeddedAddress, STILLS } from '../playground/command/stills.ts'

/**
 * Replaces a picture of a playground's scene by the scene itself, if the picture is alone in its paragraph. Links to the playground
 * leave VitePress, which does not manage that page.
 */
export function scenes(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('scenes', ({ tokens, Token }) => {
    tokens.forEach((token, index) => {
      if (token.type !== 'inline') return
      for (const child of token.children ?? []) {
        if (child.type === 'link_open' && child.attrGet('href')?.includes('playground/index.html')) child.attrSet('target', '_self')
      }
      const [image, second] = token.children ?? []
      const [open, close] = [tokens[index - 1], tokens[index + 1]]
      if (image?.type !== 'image' || second !== undefined || open?.type !== 'paragraph_open' || close === undefined) return
      const address = addressOf(image.attrGet('src') ?? '')
      if (address === undefined) return
      const attributes = { address, label: image.content }
      const made = (content: string) => Object.assign(new Token('html_block', '', 0), { content })
      const written = Object.entries(attributes).map(([name, value]) => ` ${name}="${markdown.utils.escapeHtml(value)}"`)
      tokens[index - 1] = made(`<Scene${written.join('')}>\n`)
      tokens[index + 1] = made('</Scene>\n')
    })
  })
}

/** The playground's address for a picture's scene. */
function addressOf(image: string): string | undefined {
  const name = /(?:^|\/)scene-(\w+)\.svg$/.exec(image)?.[1]
  const still = STILLS.find((one) => one.name === name)
  return still === undefined ? undefined : embeddedAddress(still)
}
