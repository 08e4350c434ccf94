/** One change of a block. Its caller has locked the row of `meta`, so that no other call changes a block. */
export const BLOCK: string = `-- Changes a block, or resets a key. "next_version" becomes the version of the list if anything changes.
-- "news" is the announcement for other processes.
CREATE OR REPLACE FUNCTION @.block_1(
  t float8, id text, width float8, cells int, ttl float8, name text, whole text, kind text, wish float8, since float8, by_hand boolean,
  factor float8, most float8, memory float8, next_version bigint, OUT remaining float8, OUT news text
) LANGUAGE plpgsql AS $body$
DECLARE
  b @.blocks;
  known float8;
  wanted float8 := CASE WHEN kind = 'lift' THEN 0 ELSE greatest(0, wish) END;
BEGIN
  SELECT * INTO b FROM @.blocks WHERE policy = id AND key = name;
  IF NOT FOUND THEN
    b := ROW(id, name, whole, 0, 0, 0, false, 0, 0, 0, 0, 0);
  END IF;
  remaining := greatest(0, b.ends - t);
  known := CASE WHEN b.epoch_until > t THEN b.epoch ELSE 0 END;
  IF kind = 'reset' THEN
    IF since <= known THEN RETURN; END IF;
    b.offences_until := 0;
    b.manual := b.manual AND remaining > 0;
    wanted := CASE WHEN b.manual THEN remaining ELSE 0 END;
    b.epoch := since;
    b.epoch_until := t + greatest(0, least((floor(since / width) + 2) * width - t + ttl, 4 * (cells * width + ttl)));
  ELSE
    IF kind = 'exceeded' AND (remaining > 0 OR since < known) OR kind = 'restore' AND remaining >= wanted OR wanted = 0 AND remaining = 0 THEN
      RETURN;
    END IF;
    IF factor IS NOT NULL AND kind = 'exceeded' THEN
      b.offences := CASE WHEN b.offences_until > t THEN b.offences ELSE 0 END;
      -- More growth makes no difference, because the longest block limits it.
      wanted := least(greatest(wanted, most), wanted * factor ^ least(b.offences, ln(1e15) / ln(factor)));
      b.offences := b.offences + 1;
      b.offences_until := t + wanted + memory;
    END IF;
    b.manual := kind = 'set' OR kind = 'restore' AND by_hand;
  END IF;
  remaining := wanted;
  b.ends := t + wanted;
  -- A process that missed the end of a block must still receive it for as long as it would apply the block.
  b.keep := greatest(b.ends, b.keep, b.epoch_until);
  b.version := next_version;
  b.expires := greatest(b.keep, b.offences_until);
  INSERT INTO @.blocks AS old SELECT b.*
  ON CONFLICT (policy, key) DO UPDATE SET
    ends = excluded.ends, keep = excluded.keep, version = excluded.version, manual = excluded.manual, epoch = excluded.epoch,
    epoch_until = excluded.epoch_until, offences = excluded.offences, offences_until = excluded.offences_until, expires = excluded.expires;
  news := json_build_array('b', id, coalesce(whole, name), remaining, remaining > 0 AND b.manual,
    CASE WHEN b.epoch_until > t THEN b.epoch ELSE 0 END)::text;
END
$body$;
`
