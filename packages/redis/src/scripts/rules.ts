/** Bytes of a document. */
const LONGEST = 16_000_000
/** The most documents in the history, and the most bytes of all of them. */
const MOST_KEPT = 100
const MOST_BYTES = 32_000_000

/** Reads the current rules. KEYS: document. Reply: the text, or nothing. */
export const READ_RULES: string = `
if redis.call('STRLEN', KEYS[1]) > ${LONGEST} then return redis.error_reply('ERR the document is too long') end
return redis.call('GET', KEYS[1])
`

/**
 * Replaces the rules if they are still the ones that their writer has read.
 *
 * KEYS: document, history. The history is a hash: number of a change → document, and the last number at '' .
 *
 * ARGV[1], JSON: before (SHA-1 of the expected text, or nothing), text, channel. Reply: 1, or 0 if there is another text.
 */
export const REPLACE_RULES: string = `
local request = cjson.decode(ARGV[1])
local before = redis.call('GET', KEYS[1])
if (before and redis.sha1hex(before) or nil) ~= request.before then return 0 end
redis.call('SET', KEYS[1], request.text)
local last = (tonumber(redis.call('HGET', KEYS[2], '') or '') or 0) + 1
redis.call('HSET', KEYS[2], '', string.format('%.0f', last))
redis.call('HSET', KEYS[2], string.format('%.0f', last), request.text)
local room = ${MOST_BYTES}
for at = last, last - ${MOST_KEPT}, -1 do
  local field = string.format('%.0f', at)
  local text = redis.call('HGET', KEYS[2], field)
  if text then
    room = room - #text
    if at < last and (room < 0 or at == last - ${MOST_KEPT}) then redis.call('HDEL', KEYS[2], field) end
  end
end
redis.call('PUBLISH', request.channel, '')
return 1
`

/** Reads the history of the rules. KEYS: history. ARGV[1]: the most texts. Reply: texts, the newest first. */
export const RULES_HISTORY: string = `
local texts = {}
local last = tonumber(redis.call('HGET', KEYS[1], '') or '') or 0
for at = last, math.max(1, last - ${MOST_KEPT}), -1 do
  if #texts >= tonumber(ARGV[1]) then break end
  local text = redis.call('HGET', KEYS[1], string.format('%.0f', at))
  if text then texts[#texts + 1] = text end
end
return texts
`
