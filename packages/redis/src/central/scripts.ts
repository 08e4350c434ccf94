import { createHash } from 'node:crypto'
import type { Question } from '@weir/core/sync'
import type { Script } from '../scripts/script.ts'
import { asked, markAsked, type Place, type ServerAlgorithm } from './algorithms/server-algorithm.ts'
import { due, opening, RESERVATION_ARGS, reservationChange } from './open.ts'

/**
 * Layout of ARGV. It begins with the field of the process and lane, and the request's sequence number. Then:
 *
 *     one take      the limit, the values of `args`, and the units unless they are one and open no reservation
 *     several       '', or 'a' for a repeated request, then for each the units, the limit, the values of `args`
 *     a change      '' or 'a', the sequence number of the request that must have counted before it (or ''), then as for one of several
 *
 * A question's reservation follows its other values.
 */

/** The most scripts in the cache, because requests choose the combinations. */
const MOST = 256
const made = new Map<string, Script>()

function kept(name: string, source: () => string): Script {
  let found = made.get(name)
  if (found === undefined) {
    const text = source()
    made.set(name, (found = { source: text, sha: createHash('sha1').update(text).digest('hex') }))
    if (made.size > MOST) made.delete(made.keys().next().value as string)
  }
  return found
}

/**
 * @param firstKey in KEYS, from 1 on
 * @param firstArg in ARGV, after the limit
 * @param debts the key to which reservations add units at their end
 */
function place(algorithm: ServerAlgorithm, firstKey: number, firstArg: number, debts = 0): Place {
  const at: Place = {
    key: (index = 0) => `KEYS[${firstKey + index}]`,
    arg: (index) => `ARGV[${firstArg + index}]`,
    due: (index) => due(algorithm, at, index, debts),
  }
  return at
}

/** Whether the key has seen this request of the process and lane, or a later one. Then the request changes nothing more. */
function seen(key: string, sequence: string): string {
  return `math.max(tonumber(redis.call('HGET', ${key}, ARGV[1]) or 0), ${asked(key)}) >= tonumber(${sequence})`
}

/**
 * A take or a look of one key, usually one call with one reply.
 *
 * @param opens whether it opens a reservation
 */
export function takeScript(id: string, algorithm: ServerAlgorithm, opens = false): Script {
  const { look, keep, takes } = algorithm
  const at = place(algorithm, 1, 4)
  return kept(
    `take ${id} ${opens}`,
    () => `local units, limit, ok, reply = tonumber(ARGV[${4 + takes}] or 1), tonumber(ARGV[3])
${look(at)}
if ok and units > 0 then
${keep(at)}
${opens ? opening(algorithm, at, 5 + takes) : ''}
end
return reply`,
  )
}

/** One question of several in a call. */
interface Part {
  readonly id: string
  readonly algorithm: ServerAlgorithm
  /** Its number of keys. */
  readonly keys: number
  /** Whether it opens a reservation. */
  readonly opens: boolean
}

/**
 * Takes of several keys, all or none, and repeated takes of one key. Replies whether they were counted before, and with the result of
 * `look`.
 */
export function takesScript(parts: readonly Part[]): Script {
  return kept(`takes ${parts.map(({ id, opens }) => `${id} ${opens}`).join(' ')}`, () => {
    let key = 1
    let arg = 4
    const seenBy: string[] = []
    const functions = parts.map(({ algorithm, keys, opens }) => {
      const { look, keep, takes } = algorithm
      const at = place(algorithm, key, arg + 2)
      seenBy.push(seen(at.key(), 'ARGV[2]'))
      const text = `function()
local units, limit, ok, reply = before and 0 or tonumber(ARGV[${arg}]), tonumber(ARGV[${arg + 1}])
${look(at)}
return ok, reply, function() if units > 0 then
${keep(at)}
${opens ? opening(algorithm, at, arg + 2 + takes) : ''}
end end
end`
      key += keys
      arg += 2 + takes + (opens ? RESERVATION_ARGS : 0)
      return text
    })
    // A request that was counted before is not counted again.
    return `local before = ARGV[3] == 'a' and ${seenBy.join(' and ')}
local all, replies, keeps = true, {}, {}
for i, part in ipairs({ ${functions.join(',\n')} }) do
  local ok, reply, keep = part()
  all = all and ok
  replies[i], keeps[i] = reply, keep
end
if all and not before then for _, keep in ipairs(keeps) do keep() end end
return { before and 1 or 0, replies }`
  })
}

/**
 * Charges and refunds of one key, and its reset.
 *
 * @param reserved whether the question is about a reservation
 */
export function changeScript(id: string, kind: Exclude<Question['kind'], 'take'>, algorithm: ServerAlgorithm, reserved = false): Script {
  return kept(`${kind} ${id} ${reserved}`, () => {
    // A reset repairs a key whose value can't be read, so the first one reads nothing.
    return `if ${kind === 'reset' ? "ARGV[3] == 'a' and " : ''}${seen('KEYS[1]', 'ARGV[2]')} then return 0 end
if ARGV[4] ~= '' and not (${seen('KEYS[1]', 'ARGV[4]')}) then return 0 end
local units, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
${changeOf(kind, algorithm, reserved)}
${kind === 'add' ? markAsked('KEYS[1]') : ''}
return 1`
  })
}

function changeOf(kind: Exclude<Question['kind'], 'take'>, algorithm: ServerAlgorithm, reserved: boolean): string {
  const { look, add, back, takes, debts } = algorithm
  if (kind === 'reset') return `for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end`
  const at = place(algorithm, 1, 7, kind === 'add' ? 0 : debts)
  if (kind === 'add') {
    if (!reserved) return add(at)
    const opens = opening(algorithm, at, 7 + takes)
    const since = `tonumber(ARGV[${11 + takes}])`
    // Times of a log are microseconds.
    const stamp = algorithm.stamp === 'here' ? 'here' : algorithm.stamp === 'now' ? `math.floor(${since} * 1000)` : since
    // Without units, a look sets the variables, and the reservation is of units that count already.
    return `if units > 0 then
${add(at)}
${opens}
else
local ok, reply
${look(at)}
${opening({ ...algorithm, stamp }, at, 7 + takes)}
end`
  }
  if (kind === 'give-back' && !reserved) return back(at, at.arg(takes))
  return reservationChange(kind, algorithm, at, debts ?? 0)
}
