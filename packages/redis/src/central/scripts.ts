import { createHash } from 'node:crypto'
import type { Question } from '@weir/core/sync'
import type { Script } from '../scripts/script.ts'
import { PAIR, type ServerAlgorithm } from './algorithms/server-algorithm.ts'

/*
 * A call has in ARGV: the field of its node, the request's sequence number, its mode, and then the questions. Modes of takes are ''
 * to count, 'l' to look only, 'a' for a request that was made before; of the others the sequence number of a request without which
 * nothing is given back, and 'a'.
 */

/** Fields of nodes that a key has at most: then those go that have not changed it in the last call. */
const MOST_NODES = 256

const NUM = `
local function num(x)
  if x % 1 == 0 then return x end
  return string.format('%.17g', x)
end`

const MARK = `
local function mark(k, added)
  if added == 0 or redis.call('HLEN', KEYS[k]) <= ${MOST_NODES} then return end
  for _, field in ipairs(redis.call('HKEYS', KEYS[k])) do
    if string.byte(field) == 64 and field ~= ARGV[1] then redis.call('HDEL', KEYS[k], field) end
  end
end`

const SEEN = `
local function seen(k, sequence)
  return tonumber(redis.call('HGET', KEYS[k], ARGV[1]) or 0) >= sequence
end`

/** Where questions begin in ARGV. */
const FIRST = 4

const made = new Map<string, Script>()

function kept(name: string, source: () => string): Script {
  let found = made.get(name)
  if (found === undefined) {
    const text = source()
    made.set(name, (found = { source: text, sha: createHash('sha1').update(text).digest('hex') }))
  }
  return found
}

/** Takes or looks of one key: as a rule one call with one reply. */
export function takeScript(id: string, { common = '', take }: ServerAlgorithm): Script {
  return kept(
    `take ${id}`,
    () => `${NUM}${MARK}${PAIR}${common}${take}
local ok, reply, x, y, z = look(1, ${FIRST})
if ok and ARGV[3] == '' then keep(1, ${FIRST}, x, y, z) end
return reply`,
  )
}

/** One question of several in a call. */
interface Part {
  readonly id: string
  readonly algorithm: ServerAlgorithm
  /** Its keys, and its arguments after the limit. */
  readonly keys: number
  readonly args: number
}

/**
 * Takes of several keys, all or none; also of one, when it is asked again. Replies whether they were counted before, and what `look`
 * does.
 */
export function takesScript(algorithms: readonly Part[]): Script {
  const name = algorithms.map(({ id, args }) => `${id} ${args}`).join(' ')
  return kept(`takes ${name}`, () => {
    const ids = [...new Set(algorithms.map(({ id }) => id))]
    const parts = ids.map((id, i) => {
      const { common = '', take } = (algorithms.find((one) => one.id === id) as Part).algorithm
      return `local alg${i} = (function()${common}${take}\nreturn { look = look, keep = keep } end)()`
    })
    let at = FIRST
    let key = 1
    const rows = algorithms.map(({ id, keys, args }) => {
      const row = `{ alg${ids.indexOf(id)}, ${key}, ${at} }`
      at += 2 + args
      key += keys
      return row
    })
    return `${NUM}${MARK}${SEEN}${PAIR}
${parts.join('\n')}
local rows = { ${rows.join(', ')} }
local before, ok, replies, all = ARGV[3] == 'a', true, {}, {}
if before then
  for _, row in ipairs(rows) do before = before and seen(row[2], tonumber(ARGV[2])) end
end
for i, row in ipairs(rows) do
  -- What was counted before is only looked at.
  if before then ARGV[row[3]] = '0' end
  local fits, reply, x, y, z = row[1].look(row[2], row[3])
  ok = ok and fits
  replies[i] = reply
  all[i] = { x, y, z }
end
if ok and not before and ARGV[3] ~= 'l' then
  for i, row in ipairs(rows) do row[1].keep(row[2], row[3], all[i][1], all[i][2], all[i][3]) end
end
return { before and 1 or 0, replies }`
  })
}

/** Charges and refunds of one key, and its reset. */
export function changeScript(
  id: string,
  kind: Exclude<Question['kind'], 'take'>,
  { common = '', take, add, back }: ServerAlgorithm,
): Script {
  const change =
    kind === 'add'
      ? `add(1, ${FIRST + 1})`
      : kind === 'give-back'
        ? `back(1, ${FIRST + 1})`
        : `for i = 1, #KEYS do redis.call('DEL', KEYS[i]) end`
  return kept(
    `${kind} ${id}`,
    () => `${NUM}${MARK}${SEEN}${PAIR}${common}${take}${kind === 'add' ? add : kind === 'give-back' ? back : ''}
if ARGV[3] == 'a' and seen(1, tonumber(ARGV[2])) then return 0 end
if ARGV[4] ~= '' and not seen(1, tonumber(ARGV[4])) then return 0 end
${change}
return 1`,
  )
}
