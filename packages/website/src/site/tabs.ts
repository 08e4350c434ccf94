import type { MarkdownRenderer } from 'vitepress'

/** Commands of npm that have one of pnpm. */
const COMMANDS: readonly (readonly [RegExp, string])[] = [
  [/^npm install /, 'pnpm add '],
  [/^npm uninstall /, 'pnpm remove '],
  [/^npx (?=weir )/, 'pnpm exec '],
]

/**
 * Shows each block of install commands in two tabs, for npm and for pnpm. The repository's files have only npm, because GitHub shows no
 * tabs.
 */
export function installTabs(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('install-tabs', (state) => {
    const { Token } = state
    state.tokens = state.tokens.flatMap((token) => {
      const pnpm = token.type === 'fence' && token.info === 'sh' ? pnpmOf(token.content) : undefined
      if (pnpm === undefined) return [token]
      const tab = (title: string, content: string) =>
        Object.assign(new Token('fence', 'code', 0), { ...token, info: `sh [${title}]`, content })
      const group = (name: string, nesting: 1 | -1) =>
        Object.assign(new Token(`container_code-group_${name}`, 'div', nesting), { block: true })
      return [group('open', 1), tab('npm', token.content), tab('pnpm', pnpm), group('close', -1)]
    })
  })
}

/** The same commands for pnpm. Undefined if they install nothing, or if one of them is unknown here. */
export function pnpmOf(commands: string): string | undefined {
  const lines = commands.split('\n')
  const converted = lines.map((line) => {
    const found = COMMANDS.find(([npm]) => npm.test(line))
    return found === undefined ? line : line.replace(...found)
  })
  const unknown = converted.some((line) => line !== '' && !line.startsWith('pnpm '))
  return unknown || !lines.some((line) => /^npm /.test(line)) ? undefined : converted.join('\n')
}
