/** A table in Markdown; the first row is its head. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...body.map(line)].join('\n')
}

/** Replaces what stands between `<!-- table:name -->` and `<!-- /table -->`; undefined when there is no such place. */
export function replaceTable(text: string, name: string, table: string): string | undefined {
  const begin = `<!-- table:${name} -->\n`
  const from = text.indexOf(begin)
  const to = text.indexOf('<!-- /table -->', from)
  return from < 0 || to < 0 ? undefined : `${text.slice(0, from + begin.length)}\n${table}\n\n${text.slice(to)}`
}
