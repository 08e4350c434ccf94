import { Redis } from 'ioredis'

/** The work of a Redis server since it started. */
export interface ServerWork {
  /** Commands executed, including commands in scripts. */
  readonly commands: number
  /** Scripts called. Each is a round trip of a process, like a command outside of scripts. */
  readonly scripts: number
  /** Processor time of the server in milliseconds. */
  readonly cpu: number
}

/** Commands of the measurement itself. */
const OWN = ['info', 'ping', 'client', 'hello']

/** Reads the work of a server, on a separate connection. */
export async function workOf(url: string): Promise<ServerWork> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  try {
    await client.connect()
    return parseWork(`${await client.info('commandstats')}\n${await client.info('cpu')}`)
  } finally {
    client.disconnect()
  }
}

/** @param info - the sections commandstats and cpu of INFO */
export function parseWork(info: string): ServerWork {
  let commands = 0
  let scripts = 0
  for (const [, name = '', calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (OWN.includes(name.split('|')[0] as string)) continue
    commands += Number(calls)
    if (/^(evalsha|eval|fcall)(_ro)?$/.test(name)) scripts += Number(calls)
  }
  const cpu = ['used_cpu_sys', 'used_cpu_user'].map((name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? Number.NaN))
  return { commands, scripts, cpu: 1_000 * cpu.reduce((sum, seconds) => sum + seconds) }
}

export function workBetween(before: ServerWork, after: ServerWork): ServerWork {
  return { commands: after.commands - before.commands, scripts: after.scripts - before.scripts, cpu: after.cpu - before.cpu }
}
