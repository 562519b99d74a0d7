"""What the server does in one go: the Lua scripts of :mod:`retain.stores.redis`.

The keys of a scope, all in one slot of a cluster since they share its digest in braces:

==================  ===========  ==============================================================
``…:meta``          hash         ``scope`` (its key), ``revision`` (the last), ``floor``
``…:m:<id>``        string       a memory: ``revision count last fact``, a line feed, JSON
``…:newest``        sorted set   ids by -created_at
``…:revisions``     sorted set   ids by revision
``…:expiry``        sorted set   ids by expires_at, of those that expire
``…:facts``         sorted set   ``<fact><id>``, of persistent facts
``…:deletions``     sorted set   ids by the revision of their deletion, down to ``floor``
``…:w:<slot>``      string       the answer of a write, for one that is sent again; it expires
``…:aside``         hash         values that ``check`` found unreadable, by id
==================  ===========  ==============================================================

A revision is the time in microseconds, or one more than the last where that is beyond it: below
2**53, so that the server's numbers hold it exactly. Every script reads before it writes, so that
what refuses it (a key of another kind, a full server) leaves everything as it was.
"""

from __future__ import annotations

import hashlib

__all__ = ["CHANGES", "EXAMINE", "FORGET", "TOUCH", "WRITE", "Script"]


class Script:
    """A script, and the digest by which a server that has seen it knows it."""

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self.sha = hashlib.sha1(self.text, usedforsecurity=False).hexdigest().encode()


_COMMON = """
local meta, newest, revisions, deletions, expiry, facts, done, place = unpack(KEYS)

local function text(number) return string.format('%.0f', number) end

local clock = redis.call('TIME')
local known = redis.call('HMGET', meta, 'scope', 'revision', 'floor')
local before = math.max(tonumber(known[2] or 0), clock[1] * 1000000 + clock[2] - 1)
if place then
  before = math.max(before, tonumber(redis.call('HGET', place, 'revision') or 0))
end
local revision = before

local function settle()
  if revision > before then
    redis.call('HSET', meta, 'revision', text(revision))
    if place then redis.call('HSET', place, 'revision', text(revision)) end
  end
end

local function again(number)
  local record = redis.call('GET', done)
  local answer = record and cmsgpack.unpack(record)
  return answer and answer[1] == number and answer
end
"""

WRITE = Script(
    _COMMON
    + """
local values, flags, name = unpack(ARGV, 1, 3)
local number, unique, keep, grace, remember, sweep, expected, deletes, counted, saved =
  string.match(flags, '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')
local at = 3
local function take() at = at + 1; return ARGV[at] end

local function told(answer)
  local equals = {}
  for _, pair in ipairs(answer[5]) do
    table.insert(equals, {pair[1], pair[2], redis.call('GET', values .. pair[2]) or ''})
  end
  return {'written', answer[2], answer[3], answer[4], equals, answer[6]}
end

local earlier = again(number)
if earlier then return told(earlier) end

-- What is there: {revision, count, last, fact} by id, false for nothing.
local heads = {}
local function head(id)
  if heads[id] == nil then
    local start = redis.call('GETRANGE', values .. id, 0, 127)
    local at, count, last, fact = string.match(start, '^(%d+) (%d+) (%S+) (%S+)\\n')
    heads[id] = start ~= '' and {at or '0', count or '0', last or '0', fact or '-'} or false
  end
  return heads[id]
end

local new = not known[1]
if new then
  for i = 2, 6 do redis.call('ZCARD', KEYS[i]) end
end
for _ = 1, expected do
  local id, revision = take(), take()
  local found = head(id) and head(id)[1] or '0'
  if found ~= revision then return {'conflict', id, found} end
end
local doomed, counts, saves = {}, {}, {}
for i = 1, deletes do
  doomed[i] = take()
  head(doomed[i])
end
for i = 1, counted do
  counts[i] = {take(), take(), take()}
  head(counts[i][1])
end
for i = 1, saved do
  local created, expires, ends, count, last, fact, id =
    string.match(take(), '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (.*)$')
  saves[i] = {created, expires, ends, count, last, fact, id, take()}
  head(id)
end
if #saves > 0 and new and name == '' then return {'unknown'} end

local function drop(id)
  local found = head(id)
  local there = redis.call('UNLINK', values .. id) + redis.call('ZREM', revisions, id)
  redis.call('ZREM', newest, id)
  redis.call('ZREM', expiry, id)
  if found and found[4] ~= '-' then redis.call('ZREM', facts, found[4] .. id) end
  heads[id] = false
  if there > 0 then
    revision = revision + 1
    redis.call('ZADD', deletions, text(revision), id)
  end
  return there > 0
end

local function larger(one, other)
  if #one ~= #other then return #one > #other and one or other end
  return one > other and one or other
end

local function later(one, other)
  return tonumber(one) > tonumber(other) and one or other
end

local gone = {}
for _, id in ipairs(doomed) do
  if drop(id) then table.insert(gone, id) end
end

for _, count in ipairs(counts) do
  local id, found = count[1], head(count[1])
  if found then
    local sum = tonumber(found[2]) + tonumber(count[2])
    if sum < 9007199254740992 then found[2] = text(sum) end
    found[3] = later(count[3], found[3])
    local body = string.match(redis.call('GET', values .. id), '\\n.*$') or ''
    redis.call('SET', values .. id, table.concat(found, ' ') .. body, 'KEEPTTL')
  end
end

local function equal(fact, id)
  for _, member in ipairs(redis.call('ZRANGEBYLEX', facts, '[' .. fact, '(' .. fact .. '\\255')) do
    local other = string.sub(member, #fact + 1)
    if other ~= id and redis.call('EXISTS', values .. other) == 1 then return other end
  end
end

local function add(index, entries)
  for i = 1, #entries, 2000 do
    redis.call('ZADD', index, unpack(entries, i, math.min(i + 1999, #entries)))
  end
end

local raised, equals, first = {}, {}, text(revision)
local times, numbers = {}, {}
local expiring = redis.call('EXISTS', expiry) == 1
local limit = expiring and clock[1] - grace
for i, save in ipairs(saves) do
  local created, expires, ends, count, last, fact, id, body = unpack(save)
  local other = unique == '1' and fact ~= '-' and equal(fact, id)
  if other then
    table.insert(equals, {i, other})
  else
    revision = revision + 1
    local found = head(id)
    if found then
      local most, latest = larger(found[2], count), later(found[3], last)
      if most ~= count or latest ~= last then table.insert(raised, {i, most, latest}) end
      count, last = most, latest
      if found[4] ~= '-' and found[4] ~= fact then
        redis.call('ZREM', facts, found[4] .. id)
      end
    end
    heads[id] = {text(revision), count, last, fact}
    local value = table.concat(heads[id], ' ') .. '\\n' .. body
    if ends == '-' then
      redis.call('SET', values .. id, value)
      if expiring then redis.call('ZREM', expiry, id) end
    else
      expiring = true
      local moment = math.max(tonumber(ends), clock[1] * 1000 + math.ceil(clock[2] / 1000))
        + grace * 1000
      redis.call('SET', values .. id, value, 'PXAT', text(moment))
      redis.call('ZADD', expiry, expires, id)
    end
    table.insert(times, created)
    table.insert(times, id)
    table.insert(numbers, text(revision))
    table.insert(numbers, id)
    if fact ~= '-' then redis.call('ZADD', facts, 0, fact .. id) end
  end
end

add(newest, times)
add(revisions, numbers)

-- What the server itself removed leaves the indexes.
local swept = 0
local over = limit and redis.call('ZRANGEBYSCORE', expiry, '-inf', limit, 'LIMIT', 0, sweep) or {}
for _, id in ipairs(over) do
  if redis.call('EXISTS', values .. id) == 0 and drop(id) then swept = swept + 1 end
end

if #saves > 0 and new then
  redis.call('HSET', meta, 'scope', name, 'floor', known[3] or text(before))
  redis.call('PERSIST', meta)
end
if (#gone > 0 or swept > 0) and redis.call('ZCARD', deletions) > 2 * keep then
  local last = redis.call('ZREVRANGE', deletions, keep, keep, 'WITHSCORES')[2]
  redis.call('ZREMRANGEBYSCORE', deletions, '-inf', last)
  redis.call('HSET', meta, 'floor', text(tonumber(last)))
end
settle()
local answer = {number, first, gone, raised, equals, revision > before and text(revision) or '0'}
redis.call('SET', done, cmsgpack.pack(answer), 'PX', remember)
return told(answer)
"""
)
"""Keys: those of the scope, ``w:…``, and the place where it may be reached (no cluster).

Answers ``{'unknown'}`` with nothing done where the scope was not registered yet; ``{'conflict',
id, revision}``; or ``{'written', revision before the saves, deleted ids, {{number, count, last
access}, …} where these are not as given, {{number, id, value}, …} where an equal fact was there,
last revision, or 0 where nothing changed}``.
"""

FORGET = Script(
    _COMMON
    + """
local values, number, aside, remember, tombstone = unpack(ARGV)
local earlier = again(number)
if earlier then return {earlier[2], earlier[3]} end
for i = 2, 6 do redis.call('ZCARD', KEYS[i]) end
if not known[1] and redis.call('EXISTS', newest, revisions, deletions) == 0 then
  return {0, known[2] or '0'}
end
local count = 0
for _, index in ipairs({revisions, newest}) do
  for _, id in ipairs(redis.call('ZRANGE', index, 0, -1)) do
    count = count + redis.call('UNLINK', values .. id)
  end
end
redis.call('UNLINK', newest, revisions, deletions, expiry, facts, aside)
revision = revision + 1
settle()
redis.call('HDEL', meta, 'scope')
redis.call('HSET', meta, 'floor', text(revision))
redis.call('PEXPIRE', meta, tombstone)
redis.call('SET', done, cmsgpack.pack({number, count, text(revision)}), 'PX', remember)
return {count, text(revision)}
"""
)
"""What is left is the scope's last revision, for a while: beyond it, the time alone will do."""

CHANGES = Script("""
local known = redis.call('HMGET', KEYS[1], 'revision', 'floor')
local revision = known[1] or '0'
if revision == ARGV[1] then return {revision} end
local since = tonumber(ARGV[1])
local reset = since > 0 and (since < tonumber(known[2] or 0) or since > tonumber(revision))
local deleted = {}
if since > 0 and not reset then
  deleted = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], revision)
end
return {revision, reset and 1 or 0, deleted}
""")
"""Keys: ``meta``, ``deletions``; argument: since when."""

EXAMINE = Script("""
local values = ARGV[1]
local found = {}
for i = 2, #ARGV do
  local id = ARGV[i]
  local value = redis.pcall('GET', values .. id) or ''
  if type(value) == 'table' then value = 'something of another kind' end
  local fact = string.match(value, '^%S+ %S+ %S+ (%S+)\\n') or '-'
  found[i - 1] = {
    value,
    redis.call('ZSCORE', KEYS[2], id) or '',
    redis.call('ZSCORE', KEYS[3], id) or '',
    redis.call('ZSCORE', KEYS[5], id) or '',
    redis.call('ZSCORE', KEYS[6], fact .. id) and 1 or 0,
    redis.call('PTTL', values .. id),
    redis.call('HGET', KEYS[1], 'revision') or '0',
  }
end
return found
""")
"""All that the server knows of some ids: for ``check``."""

TOUCH = Script("""
local last = tonumber(redis.call('HGET', KEYS[1], 'revision') or 0)
if tonumber(ARGV[1]) > last then redis.call('HSET', KEYS[1], 'revision', ARGV[1]) end
return 1
""")
"""Raise the revision of the place: after a write, on a cluster."""
