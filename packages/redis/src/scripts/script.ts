import { createHash } from 'node:crypto'

/** A Lua script and the name under which a server that has seen it knows it. */
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

/** Runs a script by its name; a server that has forgotten it (restarted, flushed, another primary) gets the source. */
export async function run(client: ScriptRunner, { sha, source }: Script, keys: readonly string[], argument: string): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, argument)
  } catch (error) {
    if (!isForgotten(error)) throw error
    return await client.eval(source, keys.length, ...keys, argument)
  }
}

/** Whether a server says that it does not know a script. */
export function isForgotten(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
