import { BUCKET_GROUPS, BUCKET_PARTS, FINE_PARTS } from '@weir/core/sync'

/** Levels of buckets, as in store/shapes/bucket-groups.ts of core. */
export const BUCKETS: string = `-- Units in a bucket at the beginning of a cell, including the units of the cell.
CREATE OR REPLACE FUNCTION @.level_1(b @.buckets, at bigint, drain float8) RETURNS float8 LANGUAGE plpgsql AS $body$
DECLARE
  o bigint := b.base_ordinal;
  level float8 := b.base_level;
  floored boolean := b.floor_ordinal IS NOT NULL;
  g bigint;
BEGIN
  FOR i IN 1 .. cardinality(b.group_ordinals) LOOP
    g := b.group_ordinals[i];
    EXIT WHEN g > at;
    level := CASE WHEN level = 0 THEN 0 ELSE greatest(0, level - (g - o) * drain) END;
    IF floored AND b.floor_ordinal < g THEN
      level := greatest(level, b.floor_level - (g - b.floor_ordinal) * drain);
      floored := false;
    END IF;
    level := level + b.group_taken[i] - b.group_given[i];
    o := g;
  END LOOP;
  level := CASE WHEN level = 0 THEN 0 ELSE greatest(0, level - (at - o) * drain) END;
  IF floored AND b.floor_ordinal <= at THEN
    level := greatest(level, b.floor_level - (at - b.floor_ordinal) * drain);
  END IF;
  RETURN level;
END
$body$;

-- Counts a process's cells of one bucket, each [ordinal, taken, given, rejected, level], and returns the bucket's totals.
CREATE OR REPLACE FUNCTION @.bucket_1(
  me text, t float8, id text, width float8, cells int, "limit" float8, mark float8, ttl float8, drain float8, debt float8, name text, whole text,
  sent jsonb, since float8, OUT cell json, OUT announces boolean
) LANGUAGE plpgsql AS $body$
DECLARE
  b @.buckets;
  running bigint := floor(t / width);
  span bigint := CASE WHEN drain > 0 THEN least(cells, ceil("limit" / drain)) ELSE cells END;
  grouped bigint := greatest(1, span / ${BUCKET_PARTS});
  fine bigint := greatest(1, span / ${FINE_PARTS});
  asks boolean := NOT EXISTS (SELECT 1 FROM jsonb_array_elements(sent) c WHERE (c->>1)::float8 > 0 OR (c->>2)::float8 > 0 OR (c->>3)::float8 > 0 OR (c->>4)::float8 > 0);
  held float8; after float8; units float8 := 0; excess float8; cut float8; run float8;
  one record; known jsonb; o bigint; place int; apart boolean; joins boolean; more_taken float8; more_given float8; more_rejected float8; silent boolean; holds boolean; before bigint; folded boolean := false;
BEGIN
  announces := false;
  IF asks THEN
    SELECT * INTO b FROM @.buckets WHERE policy = id AND key = name AND epoch >= since AND expires > t;
  ELSE
    SELECT * INTO b FROM @.buckets WHERE policy = id AND key = name FOR UPDATE;
    IF NOT FOUND THEN
      INSERT INTO @.buckets (policy, key, label, expires) VALUES (id, name, whole, t) ON CONFLICT (policy, key) DO NOTHING;
      SELECT * INTO b FROM @.buckets WHERE policy = id AND key = name FOR UPDATE;
    END IF;
  END IF;
  IF b.policy IS NULL OR b.epoch < since OR b.expires <= t THEN
    b := ROW(id, name, whole, NULL, 0, NULL, NULL, '{}'::bigint[], '{}'::float8[], '{}'::float8[], '{}'::jsonb, 0, 0, 0, running, running + span, 0, false, since, t);
  END IF;
  IF NOT asks THEN
    -- After a silence, processes may send older counts than usual. So only groups that were old before it are added to the level.
    silent := running - b.written_in > span / 2.0;
    holds := running < b.held_until;
    IF silent OR NOT holds THEN
      before := CASE WHEN silent THEN b.written_in ELSE running END - CASE WHEN holds THEN 2 ELSE 1 END * span;
      WHILE cardinality(b.group_ordinals) > 0 AND b.group_ordinals[1] < before LOOP
        o := b.group_ordinals[1];
        held := greatest(0, b.base_level - (o - coalesce(b.base_ordinal, o)) * drain);
        IF b.floor_ordinal < o THEN
          held := greatest(held, b.floor_level - (o - b.floor_ordinal) * drain);
          b.floor_ordinal := NULL;
        END IF;
        b.base_ordinal := o;
        b.base_level := held + b.group_taken[1] - b.group_given[1];
        b.group_ordinals := b.group_ordinals[2:];
        b.group_taken := b.group_taken[2:];
        b.group_given := b.group_given[2:];
        folded := true;
      END LOOP;
      IF folded THEN
        SELECT coalesce(jsonb_object_agg(n.node, n.kept), '{}') INTO b.nodes FROM (
          SELECT n.key AS node, jsonb_object_agg(c.key, c.value) AS kept FROM jsonb_each(b.nodes) n, jsonb_each(n.value) c
          WHERE c.key::bigint > b.base_ordinal GROUP BY n.key
        ) n;
      END IF;
    END IF;
    -- It may be too far in the future if it comes from a limit with a longer span, or from a clock that was ahead.
    b.held_until := CASE WHEN silent THEN running + span ELSE least(b.held_until, running + span) END;
    b.written_in := greatest(b.written_in, running);
    held := @.level_1(b, running, drain);

    FOR one IN SELECT (c->>0)::bigint AS o, (c->>1)::float8 AS taken, (c->>2)::float8 AS given, (c->>3)::float8 AS rejected FROM jsonb_array_elements(sent) c LOOP
      CONTINUE WHEN one.o <= b.base_ordinal OR one.taken = 0 AND one.given = 0 AND one.rejected = 0;
      known := coalesce(b.nodes->me->(one.o::text), '[0,0,0]');
      more_taken := greatest(0, one.taken - (known->>0)::float8);
      more_given := greatest(0, one.given - (known->>1)::float8);
      more_rejected := greatest(0, one.rejected - (known->>2)::float8);
      CONTINUE WHEN more_taken = 0 AND more_given = 0 AND more_rejected = 0;
      b.nodes := b.nodes || jsonb_build_object(me, coalesce(b.nodes->me, '{}') || jsonb_build_object(one.o::text, jsonb_build_array(
        (known->>0)::float8 + more_taken, (known->>1)::float8 + more_given, (known->>2)::float8 + more_rejected)));
      b.rejected := b.rejected + more_rejected;
      CONTINUE WHEN more_taken = 0 AND more_given = 0;
      -- The cell's group, which is made if there is none.
      o := least(one.o, running);
      place := cardinality(b.group_ordinals);
      WHILE place > 0 AND b.group_ordinals[place] > o LOOP place := place - 1; END LOOP;
      joins := false;
      IF place > 0 THEN
        apart := coalesce(b.floor_ordinal >= b.group_ordinals[place] AND b.floor_ordinal < o, false);
        -- The bucket has not been empty since, so the exact time of these units does not matter.
        joins := NOT apart AND (o - b.group_ordinals[place] < fine OR o - b.group_ordinals[place] < grouped
          AND @.level_1(b, b.group_ordinals[place], drain) >= (o - b.group_ordinals[place]) * drain);
      END IF;
      IF NOT joins THEN
        b.group_ordinals := b.group_ordinals[:place] || o || b.group_ordinals[place + 1:];
        b.group_taken := b.group_taken[:place] || 0::float8 || b.group_taken[place + 1:];
        b.group_given := b.group_given[:place] || 0::float8 || b.group_given[place + 1:];
        place := place + 1;
      END IF;
      b.group_taken[place] := b.group_taken[place] + more_taken;
      b.group_given[place] := least(b.group_taken[place], b.group_given[place] + more_given);
      b.taken := b.taken + more_taken;
      b.given := least(b.taken, b.given + more_given);
      units := units + more_taken;
    END LOOP;
    -- The two oldest groups become one. For a rarely used key both have drained long ago, and a key that is always full loses nothing.
    WHILE cardinality(b.group_ordinals) > ${BUCKET_GROUPS} LOOP
      b.group_ordinals := b.group_ordinals[1] || b.group_ordinals[3:];
      b.group_taken := b.group_taken[1] + b.group_taken[2] || b.group_taken[3:];
      b.group_given := b.group_given[1] + b.group_given[2] || b.group_given[3:];
    END LOOP;

    -- The level that a process received earlier, if it was lost here.
    FOR one IN SELECT (c->>0)::bigint AS o, (c->>4)::float8 AS level FROM jsonb_array_elements(sent) c LOOP
      CONTINUE WHEN one.level = 0 OR one.o <= b.base_ordinal OR one.o > running;
      IF one.level - (running - one.o) * drain > @.level_1(b, running, drain) THEN
        b.floor_ordinal := one.o;
        b.floor_level := one.level;
      END IF;
    END LOOP;

    -- Drops the debt above the policy's maximum. It removes the newest units, as if they had been refunded.
    excess := @.level_1(b, running, drain) - "limit" - coalesce(debt, 'Infinity');
    IF excess > 0 THEN
      FOR i IN REVERSE cardinality(b.group_ordinals) .. 1 LOOP
        EXIT WHEN excess <= 0;
        cut := least(excess, b.group_taken[i] - b.group_given[i]);
        b.group_given[i] := b.group_given[i] + cut;
        excess := excess - cut;
      END LOOP;
      IF excess > 0 THEN b.base_level := greatest(0, b.base_level - excess); END IF;
    END IF;

    after := @.level_1(b, running, drain);
    IF units > 0 THEN
      -- The bucket has drained since the running cell began. A unit must fit by the level of this moment.
      run := drain * (t / width - running);
      announces := after - run >= mark AND units >= greatest(2, "limit" / 20)
        OR after - run > "limit" - 1 AND (held - run <= "limit" - 1 OR t - b.announced_at NOT BETWEEN 0 AND 10);
      b.hot := b.hot AND held - run >= mark / 2;
      IF after - run >= mark AND NOT b.hot THEN
        b.hot := true;
        announces := true;
      END IF;
      IF announces AND after - run > "limit" - 1 THEN b.announced_at := t; END IF;
    END IF;
    -- Rounded up, so that only few writes change it.
    b.expires := ceil((t + ttl + CASE WHEN drain > 0 THEN after / drain * width ELSE 0 END) / (ttl / 4)) * (ttl / 4);
    UPDATE @.buckets SET base_ordinal = b.base_ordinal, base_level = b.base_level, floor_ordinal = b.floor_ordinal, floor_level = b.floor_level,
      group_ordinals = b.group_ordinals, group_taken = b.group_taken, group_given = b.group_given, nodes = b.nodes, taken = b.taken, given = b.given,
      rejected = b.rejected, written_in = b.written_in, held_until = b.held_until, announced_at = b.announced_at, hot = b.hot, epoch = b.epoch, expires = b.expires
    WHERE policy = id AND key = name;
  ELSE
    after := @.level_1(b, running, drain);
  END IF;
  cell := CASE WHEN b.rejected > 0 THEN json_build_array(running, b.taken, b.given, after, b.rejected) ELSE json_build_array(running, b.taken, b.given, after) END;
END
$body$;
`
