import { fileRules, httpRules, type RulesSource } from '@weir/core/rules'
import { UsageError } from '../terminal/usage-error.ts'
import { pathOf } from './read-rules.ts'

/** A source of rules, and a function that closes its connections. */
export interface OpenSource extends Pick<RulesSource, 'name' | 'replace' | 'history'> {
  /** The text of the source. Undefined if it is empty. */
  read(): Promise<string | undefined>
  close(): void
}

/** The options that name a source. */
export interface SourceOptions {
  /** One of `SOURCES`, the path of a file, or its `file:` URL. */
  readonly source: string
  readonly namespace: string
  readonly name: string
}

/** Addresses of sources, for help and error messages. */
export const SOURCES = 'redis://host:6379, rediss://…, for etcd http://host:2379 or https://…, a URL with a path, or a file'

/** Milliseconds. */
const TIMEOUT = 5_000

/**
 * Opens the source at an address. Loads only the code of this source.
 *
 * @throws (rejects) UsageError for an address of no source, WeirError for invalid options
 */
export async function openSource({ source: address, namespace, name }: SourceOptions): Promise<OpenSource> {
  // The scheme has at least two letters, because a drive of Windows has one.
  const [, scheme = 'file'] = /^([a-z][a-z0-9+.-]+):/i.exec(address) ?? []
  switch (scheme.toLowerCase()) {
    case 'redis':
    case 'rediss': {
      const { redisRules } = await import('@weir/redis')
      return sourceOf(redisRules(address, { namespace, name, timeout: TIMEOUT }))
    }
    case 'http':
    case 'https': {
      if (hasPath(address)) return sourceOf(httpRules(address))
      const [{ etcdRules }, { etcdTarget }] = await Promise.all([import('@weir/etcd'), import('../cluster/etcd-target.ts')])
      return sourceOf(etcdRules(etcdTarget(address), { namespace, name, timeout: TIMEOUT }))
    }
    case 'file':
      return sourceOf(fileRules(pathOf(address)))
    default:
      throw new UsageError(`${JSON.stringify(scheme)} is not a source of rules. Use ${SOURCES}.`)
  }
}

/** Whether the address has a path. Addresses of etcd's members have none. */
function hasPath(address: string): boolean {
  return !address.split(',').every((one) => /^https?:\/\/[^/?#]+\/?$/i.test(one))
}

function sourceOf(source: RulesSource & { close?(): void }): OpenSource {
  const { name, replace, history } = source
  return {
    name,
    read: () =>
      reached(
        name,
        source.read(AbortSignal.timeout(TIMEOUT)).catch((error: NodeJS.ErrnoException) => {
          // The file does not exist yet.
          if (error.code === 'ENOENT') return undefined
          throw error.name === 'TimeoutError' ? new Error(`no answer within ${TIMEOUT} ms`) : error
        }),
      ),
    ...(replace !== undefined && { replace: (before, text) => reached(name, replace.call(source, before, text)) }),
    ...(history !== undefined && { history: (most) => reached(name, history.call(source, most)) }),
    close: () => source.close?.(),
  }
}

/** @throws UsageError for every failure */
async function reached<T>(name: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    const reason = error instanceof Error && error.message !== '' ? error.message : String(error)
    throw new UsageError(`Can't use ${name}: ${reason}`)
  }
}
