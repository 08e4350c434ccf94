import { expect, test } from 'vitest'
import { shortenLua } from '../src/lua.js'

const short = (script: string) => shortenLua([script])[0]

test('comments and needless space go, texts stay', () => {
  expect(short("-- why\nreturn redis.call( 'GET',  KEYS[1] ) --[[ and\nthat ]] .. ' -- no  comment '")).toBe(
    "return redis.call('GET',KEYS[1])..' -- no  comment '",
  )
})

test('words, numbers and dots are kept apart', () => {
  expect(short("if not ARGV[1] then return 1 .. '' end return 2 - -1")).toBe("if not ARGV[1]then return 1 ..''end return 2- -1")
})

test('local variables, parameters and functions get short names; fields, texts and what Redis hands over keep theirs', () => {
  const script = `local list = { list = 1, other = list }
local function length(item, ...)
  for index, item in ipairs(item.list) do item.length = index end
  function list.item(list) return list:item('list') end
  return { keep = function(keep) local list = keep keep = list return keep end, other = item }
end
return length(list)`
  expect(short(script)).toBe(
    "local a={list=1,other=a}local function e(b,...)for d,b in ipairs(b.list)do b.length=d end function a.item(a)return a:item('list')end return{keep=function(c)local a=c c=a return c end,other=b}end return e(a)",
  )
})

test('a name means the same in all pieces', () => {
  expect(shortenLua(['local total = 1', 'return total'])).toEqual(['local a=1', 'return a'])
})

test('a global that a local variable would hide is rejected', () => {
  expect(() => short('local type = 1')).toThrow('type')
})
