import { RedisServer } from '@weir/tooling/redis-servers'
import type { Attack, Context } from './attack.ts'
import type { StoreKind, Target } from './given.ts'
import { Random } from './random.ts'
import { Victim } from './victim.ts'

/** One attack on one target. */
export interface Job {
  readonly attack: Attack
  readonly target: Target
  readonly store: StoreKind
}

export interface Result {
  readonly tried: string
  readonly held: boolean
  readonly figure: string
}

export interface Settings {
  /** The file that attacked processes run. */
  readonly program: string
  readonly short: boolean
  readonly seed: number
  readonly time: number
}

/** The jobs of a run, in order. */
export function jobsOf(attacks: readonly Attack[], short: boolean): Job[] {
  return attacks.flatMap((attack) => {
    const targets = (short ? attack.short?.targets : undefined) ?? attack.targets
    const stores = (short ? attack.short?.stores : undefined) ?? attack.stores ?? ['none']
    return targets.flatMap((target) => stores.map((store): Job => ({ attack, target, store })))
  })
}

let runs = 0

/** Runs one attack on one target, and always ends the processes that it started. */
export async function runJob({ attack, target, store }: Job, { program, short, seed, time }: Settings): Promise<Result[]> {
  const results: Result[] = []
  const victims: Victim[] = []
  const namespace = `attack-${process.pid}-${++runs}`
  const redis = store === 'redis' ? await RedisServer.start() : undefined
  const context: Context<unknown> = {
    target,
    store,
    short,
    time,
    namespace,
    random: new Random(seed),
    redis: redis as RedisServer,
    async start(args, options) {
      const given = { target, store, redis: redis?.url, namespace, args }
      const victim = await Victim.start(program, attack.name, given, options)
      victims.push(victim)
      return victim
    },
    result(tried, held, figure = '') {
      results.push({ tried, held, figure })
    },
  }
  try {
    await (attack as unknown as Attack<unknown>).run(context)
  } catch (error) {
    // A result that can't be judged counts as a success of the attack.
    const ended = victims.find((victim) => !victim.up)?.ended
    results.push({ tried: 'to the end', held: false, figure: `${ended ?? String((error as Error)?.stack ?? error)}` })
  } finally {
    await Promise.all(victims.map((victim) => victim.kill()))
    await redis?.stop()
  }
  if (results.length === 0) results.push({ tried: 'nothing', held: false, figure: 'the attack told no result' })
  return results
}

/** Runs jobs on several workers. Jobs that measure run at the end, one at a time. */
export async function runJobs(
  jobs: readonly Job[],
  settings: Settings,
  done: (job: Job, results: readonly Result[]) => void,
  workers = 2,
): Promise<void> {
  const waiting = jobs.filter(({ attack }) => attack.alone !== true)
  const work = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) done(job, await runJob(job, settings))
  }
  await Promise.all(Array.from({ length: workers }, work))
  for (const job of jobs) if (job.attack.alone === true) done(job, await runJob(job, settings))
}
