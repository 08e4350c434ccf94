import { RulesError } from '@weir/core/rules'
import { type Command, Option } from 'commander'
import { differencesOf } from '../rules/differences.ts'
import { asVersion, type Document, documentIn, documentOf } from '../rules/document.ts'
import { type OpenSource, openSource, SOURCES, type SourceOptions } from '../rules/sources.ts'
import { REJECTED } from '../terminal/exit-codes.ts'
import type { Output } from '../terminal/output.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { wholeNumber } from './options.ts'
import { contentsText, showDifferences, type VersionReport, versionReport, versionText } from './rules-text.ts'

type End = (code: number) => void
interface Shown {
  readonly json?: true
}
interface ByAndWhy {
  readonly by?: string
  readonly why?: string
}

const RULES = 'the rules, in YAML or JSON'
/** The most versions to read from a source. */
const MOST_VERSIONS = 1_000

/** Adds `weir check`, `push`, `diff`, `log` and `rollback`. */
export function addRules(program: Command, out: Output, end: End): void {
  program
    .command('check')
    .summary('validate rules')
    .description('Validates a document of rules, as a process does that follows it.')
    .argument('<rules>', RULES)
    .option('--against <file>', 'the current rules, to show the differences')
    .option('--json', 'print the result as JSON')
    .action(async (file: string, { against, json }: { against?: string } & Shown) => {
      const document = await documentIn(file)
      const differences = against === undefined ? undefined : differencesOf((await documentIn(against)).value, document.value)
      if (json === true) return out.json({ ...versionReport(document.rules), ...(differences && { differences }) })
      out.line(`The rules are valid: ${versionText(versionReport(document.rules))}, ${contentsText(document.rules)}.`)
      if (differences !== undefined) showDifferences(differences, out)
    })
  withSource(program.command('diff'))
    .summary('show how rules differ from those of a source')
    .description('Shows how rules differ from those of a source, option by option. Exit code 1 if they do.')
    .argument('<rules>', RULES)
    .option('--json', 'print the result as JSON')
    .action(async (file: string, options: SourceOptions & Shown) => {
      const document = await documentIn(file)
      const held = await using(options, (source) => documentAt(source))
      const differences = differencesOf(held?.value, document.value)
      if (options.json === true) out.json({ held: held && versionReport(held.rules), rules: versionReport(document.rules), differences })
      else {
        out.line(
          `${held === undefined ? 'nothing' : versionText(versionReport(held.rules))} → ${versionText(versionReport(document.rules))}`,
        )
        showDifferences(differences, out)
      }
      if (differences.length > 0) end(REJECTED)
    })
  withSource(program.command('push'))
    .summary('write rules to a source, for all processes that follow it')
    .description(
      "Validates rules and writes them to a source. Their version must be one above the source's. Processes that follow it apply them immediately.",
    )
    .argument('<rules>', RULES)
    .option('--json', 'print the result as JSON')
    .action(async (file: string, options: SourceOptions & Shown) => {
      const document = await documentIn(file)
      const rejection = await using(options, (source) => push(document, source))
      told(rejection, versionReport(document.rules), options, out, end)
    })
  withSource(program.command('log'))
    .summary('list the versions of a source')
    .description('Lists the versions of a source, newest first.')
    .option('--most <n>', 'versions to list, 1 to 1000', wholeNumber(1, MOST_VERSIONS), 20)
    .option('--json', 'print the result as JSON')
    .action(async (options: SourceOptions & Shown & { readonly most: number }) => {
      const versions = (await using(options, (source) => versionsAt(source, options.most))).map(({ rules }) => versionReport(rules))
      if (options.json === true) return out.json(versions)
      for (const version of versions) out.line(versionText(version))
      if (versions.length === 0) out.note('The source contains no rules yet.')
    })
  withSource(program.command('rollback'))
    .summary('publish older rules again')
    .description('Publishes older rules as a new version.')
    .argument(
      '[version]',
      'the version to restore. Without it, the last valid one before the current',
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option('--by <who>', 'the author, for the log')
    .option('--why <text>', 'the reason, for the log. By default it states the version that was restored')
    .option('--json', 'print the result as JSON')
    .action(async (version: number | undefined, options: SourceOptions & Shown & ByAndWhy) => {
      const { rejection, document } = await using(options, (source) => rollBack(source, version, options))
      told(rejection, versionReport(document.rules), options, out, end)
    })
}

function withSource(command: Command): Command {
  return command
    .addOption(new Option('--source <address>', `the source: ${SOURCES}`).env('WEIR_SOURCE').makeOptionMandatory())
    .option('--namespace <text>', 'beginning of the keys in Redis and etcd', 'weir')
    .option('--name <text>', 'distinguishes several documents in Redis or etcd', 'default')
}

function told(rejection: string | undefined, report: VersionReport, { json }: Shown, out: Output, end: End): void {
  if (rejection !== undefined) end(REJECTED)
  if (json === true) out.json({ pushed: rejection === undefined, ...(rejection === undefined ? {} : { why: rejection }), rules: report })
  else if (rejection === undefined) out.line(`The source now contains ${versionText(report)}.`)
  else out.note(`weir: ${rejection}`)
}

async function using<T>(options: SourceOptions, run: (source: OpenSource) => Promise<T>): Promise<T> {
  const source = await openSource(options)
  try {
    return await run(source)
  } finally {
    source.close()
  }
}

/**
 * The contents of a source. Undefined if it is empty.
 *
 * @throws (rejects) UsageError if the document is invalid
 */
async function documentAt(source: OpenSource): Promise<Document | undefined> {
  const text = await source.read()
  try {
    return text === undefined ? undefined : documentOf(text)
  } catch (error) {
    if (error instanceof RulesError) throw new UsageError(`The rules in ${source.name} are invalid: ${error.message}`)
    throw error
  }
}

/** @returns the reason for a rejection. Undefined if the document was written, or is already there */
async function push(document: Document, source: OpenSource): Promise<string | undefined> {
  const before = await source.read()
  if (before === document.text) return undefined
  const { version } = document.rules
  const held = before === undefined ? undefined : heldVersion(before)
  if (held !== undefined && version !== held + 1) {
    const hint = version <= held ? 'Another push may have changed the rules. Run weir diff, then' : 'Versions have no gaps, so'
    return `${source.name} contains version ${held}, but the document is version ${version}. ${hint} set "version": ${held + 1}.`
  }
  return replace(source, before, document.text)
}

/** @returns the version of a text. Undefined for an invalid document, which any document may replace */
function heldVersion(text: string): number | undefined {
  try {
    return documentOf(text).rules.version
  } catch (error) {
    if (error instanceof RulesError) return undefined
    throw error
  }
}

async function replace(source: OpenSource, before: string | undefined, text: string): Promise<string | undefined> {
  if (source.replace === undefined) throw new UsageError(`${source.name} can't be written.`)
  return (await source.replace(before, text))
    ? undefined
    : `Another push changed ${source.name} at the same moment. Nothing was written. Run weir diff, then push again.`
}

/** Valid documents that a source has kept, newest first. Skips documents that are no longer valid. */
async function versionsAt(source: OpenSource, most: number): Promise<readonly Document[]> {
  const held = await source.read()
  const texts = source.history === undefined ? (held === undefined ? [] : [held]) : await source.history(most)
  return texts.flatMap((text) => {
    try {
      return [documentOf(text)]
    } catch (error) {
      if (error instanceof RulesError) return []
      throw error
    }
  })
}

async function rollBack(
  source: OpenSource,
  version: number | undefined,
  { by, why }: ByAndWhy,
): Promise<{ readonly rejection: string | undefined; readonly document: Document }> {
  if (source.history === undefined) throw new UsageError(`${source.name} keeps no older versions.`)
  const before = await source.read()
  const versions = await versionsAt(source, MOST_VERSIONS)
  const [newest] = versions
  // If the current document is invalid, the previous version is the newest valid one.
  const previous = newest?.text === before ? versions[1] : newest
  const old = version === undefined ? previous : versions.find(({ rules }) => rules.version === version)
  if (before === undefined || newest === undefined || old === undefined)
    throw new UsageError(
      `${source.name} contains no ${version === undefined ? 'older version' : `version ${version}`}. weir log lists its versions.`,
    )
  const change = {
    at: new Date().toISOString(),
    ...(by !== undefined && { by }),
    why: why ?? `back to version ${old.rules.version}`,
  }
  const next = Math.max(newest.rules.version, heldVersion(before) ?? 0) + 1
  const document = documentOf(asVersion(old.text, next, change))
  return { rejection: await replace(source, before, document.text), document }
}
