/** A table in Markdown. The first row is its head. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...body.map(line)].join('\n')
}

/** Replaces the text between `<!-- table:name -->` and `<!-- /table -->`. Undefined if there is no such marker. */
export function replaceTable(text: string, name: string, table: string): string | undefined {
  const begin = `<!-- table:${name} -->\n`
  const from = text.indexOf(begin)
  const to = text.indexOf('<!-- /table -->', from)
  return from < 0 || to < 0 ? undefined : `${text.slice(0, from + begin.length)}\n${table}\n\n${text.slice(to)}`
}
