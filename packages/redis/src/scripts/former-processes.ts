/** A hash is searched whenever a process adds its field and the number of fields is a multiple of this. */
const EVERY = 32
/** The most fields that one search reads. More would keep the server busy for too long, because a field can contain thousands of numbers. */
const MOST = 64

/**
 * Lua that writes fields of a key's hash. A key that is always in use never expires, so this removes the fields of processes whose counts
 * have all expired. Otherwise each process that ever used the key would leave one. If there are many, it starts at any of them.
 *
 * It is no function, because making one costs each call time.
 *
 * @param write the arguments of HSET
 * @param own the field of this process
 * @param isOver what a function with `text`, the content of a field, returns. If it raises an error, the field stays for its process to find
 */
export function writeFields(write: string, own: string, isOver: string): string {
  return `if call('HSET', ${write}) > 0 and call('HLEN', hash) % ${EVERY} == 0 then
      local all = call('HKEYS', hash)
      for i = clock[2] + 1, clock[2] + math.min(#all, ${MOST}) do
        local field = all[i % #all + 1]
        if field ~= ${own} and string.byte(field) ~= 58 then
          local text = call('HGET', hash, field)
          local read, over = pcall(function() ${isOver} end)
          if read and over then call('HDEL', hash, field) end
        end
      end
    end`
}
