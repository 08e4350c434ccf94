import { createHash } from 'node:crypto'

/** A Lua script, and its SHA-1, by which a server calls a script that it has in its cache. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/** The methods of a client that run scripts: of ioredis 5 and 6, single server and Cluster. */
export interface ScriptRunner {
  evalsha(sha: string, keyCount: number, ...args: string[]): Promise<unknown>
  eval(source: string, keyCount: number, ...args: string[]): Promise<unknown>
}

/** Runs a script by its SHA-1. If the server does not have it (after a restart, a flush, or on another primary), it gets the source. */
export async function run(client: ScriptRunner, { sha, source }: Script, keys: readonly string[], argument: string): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, argument)
  } catch (error) {
    if (!isForgotten(error)) throw error
    return await client.eval(source, keys.length, ...keys, argument)
  }
}

/** Whether a server replied that a script is not in its cache. */
export function isForgotten(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
