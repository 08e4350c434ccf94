import type { Figure } from '../figure.ts'
import { tableOf } from '../markdown.ts'
import { COMMANDS, helpTexts } from './command-line.ts'
import { errorRows } from './errors.ts'
import { MEMBER_TABLES, memberRows } from './members.ts'
import { METRIC_TABLES, metricRows } from './metrics.ts'
import { OPTION_TABLES, optionRows } from './options.ts'
import { type PublicOption, publicOptions } from './public-options.ts'
import { Sources } from './sources.ts'

/** The tables of the reference pages, from the sources. */
export async function referenceTables(sources: Sources, options: readonly PublicOption[]): Promise<Record<string, string>> {
  return {
    ...mapped(OPTION_TABLES, (table) => tableOf(optionRows(table, options, sources))),
    ...mapped(MEMBER_TABLES, (table) => tableOf(memberRows(table, sources))),
    ...mapped(METRIC_TABLES, (names) => tableOf(metricRows(names))),
    ...(await helpTexts()),
    errors: tableOf(errorRows(false)),
    warnings: tableOf(errorRows(true)),
  }
}

export const reference: Figure = {
  name: 'reference',
  makes: [
    ...Object.keys(OPTION_TABLES),
    ...Object.keys(MEMBER_TABLES),
    ...Object.keys(METRIC_TABLES),
    'errors',
    'warnings',
    'cli-help',
    ...COMMANDS.map((command) => `cli-${command}`),
  ],
  about: 'the tables of the reference pages, from types and docstrings',
  async make() {
    const sources = new Sources('reference')
    try {
      return { tables: await referenceTables(sources, publicOptions(sources, sources.entries)) }
    } finally {
      sources.close()
    }
  },
}

function mapped<T>(tables: Readonly<Record<string, T>>, text: (table: T) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, text(table)]))
}
