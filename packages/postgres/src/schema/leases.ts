/** Milliseconds for which an interval's row stays after its end, because clocks may be corrected a little. */
const KEPT = 1_000

/** Quota that processes take ahead: `grantLease` of core, step by step. */
export const LEASES: string = `-- The quota that a process has ahead, and the quota that it has used,
-- from [granted, returned, taken, given, cleared, seq, until, returned units and charged units of reservations that ended], and then
-- [due, back] of each open reservation.
CREATE OR REPLACE FUNCTION @.out_1(r float8[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS $body$
  SELECT greatest(0, greatest(r[1] - r[2], r[3] - r[4] + r[9]) - r[8] - r[5])
$body$;

CREATE OR REPLACE FUNCTION @.used_1(r float8[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS $body$
  SELECT greatest(0, r[3] - r[4] + r[9] - r[8] - r[5])
$body$;

CREATE OR REPLACE FUNCTION @.row_1(of jsonb) RETURNS float8[] LANGUAGE sql IMMUTABLE AS $body$
  SELECT array_agg(x::float8 ORDER BY i) FROM jsonb_array_elements_text(of) WITH ORDINALITY e(x, i)
$body$;

-- The first time at which an open reservation of a row is settled. NULL if none is open.
CREATE OR REPLACE FUNCTION @.due_1(r float8[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS $body$
  SELECT min(r[i]) FROM generate_series(10, cardinality(r), 2) i
$body$;

-- A row without the open reservations that its process should have settled. Returned units belong to no process any more.
CREATE OR REPLACE FUNCTION @.settled_1(r float8[], t float8) RETURNS float8[] LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
  s float8[] := r[1:9];
BEGIN
  FOR i IN 10 .. cardinality(r) BY 2 LOOP
    IF r[i] > t THEN
      s := s || r[i:i + 1];
    ELSE
      s[8] := s[8] + greatest(0, r[i + 1]);
      s[9] := s[9] + greatest(0, -r[i + 1]);
    END IF;
  END LOOP;
  RETURN s;
END
$body$;

-- Stores a process's report about a key in one interval, and grants it units that no other process has. "ask" is [ordinal, incarnation, seq,
-- granted, returned, taken, given, cleared, epoch, least, waiting, upTo, limit, nodes, early, lifetime], and then [due, back] of each open reservation.
CREATE OR REPLACE FUNCTION @.grant_1(
  me text, t float8, id text, width float8, name text, whole text, ask jsonb, OUT reply json, OUT news text
) LANGUAGE plpgsql AS $body$
DECLARE
  a float8[] := @.row_1(ask);
  o bigint := (ask->>0)::bigint;
  held boolean := o = ${Number.MAX_SAFE_INTEGER};
  field text := me || ' ' || (ask->>1);
  l @.leases;
  mine float8[];
  one record;
  old float8[];
  most float8 := a[13]; live float8 := a[14]; lifetime float8 := a[16];
  before float8; was_tail boolean; is_lost boolean; unmet boolean := false; room float8; ahead float8; reached float8; free float8;
BEGIN
  -- An interval that is not running has no counts.
  IF NOT held AND (t < o * width - a[15] OR t >= (o + 1) * width) THEN
    reply := json_build_array(0, 0, 0, false, 0, 0, t);
    RETURN;
  END IF;
  SELECT * INTO l FROM @.leases WHERE policy = id AND key = name AND ordinal = o FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO @.leases (policy, key, ordinal, label, expires) VALUES (id, name, o, whole, t) ON CONFLICT (policy, key, ordinal) DO NOTHING;
    SELECT * INTO l FROM @.leases WHERE policy = id AND key = name AND ordinal = o FOR UPDATE;
  END IF;
  IF l.expires <= t THEN
    l := ROW(id, name, o, whole, 0, 0, false, 0, 0, NULL, '{}'::jsonb, 0, false, t);
  END IF;

  -- Quota of processes that were silent for their lifetime is free. Only slots have a lifetime.
  IF t >= l.earliest THEN
    l.earliest := NULL;
    FOR one IN SELECT key, @.row_1(value) AS r FROM jsonb_each(l.rows) LOOP
      l.held := l.held - @.out_1(one.r);
      l.used := l.used - @.used_1(one.r);
      IF held AND one.r[7] <= t THEN
        l.rows := l.rows - one.key;
        CONTINUE;
      END IF;
      one.r := @.settled_1(one.r, t);
      l.held := l.held + @.out_1(one.r);
      l.used := l.used + @.used_1(one.r);
      l.rows := l.rows || jsonb_build_object(one.key, to_jsonb(one.r));
      l.earliest := least(l.earliest, @.due_1(one.r), CASE WHEN held THEN one.r[7] END);
    END LOOP;
  END IF;
  before := most - l.held;
  was_tail := l.tail;
  -- After a reset, units that processes have reported as used no longer count. Their quota still counts until they report that they received it.
  IF a[9] > l.epoch THEN
    l.epoch := a[9];
    FOR one IN SELECT key, @.row_1(value) AS r FROM jsonb_each(l.rows) LOOP
      old := one.r;
      one.r := old[1:7] || ARRAY[0, 0]::float8[];
      one.r[5] := greatest(old[5], old[3] - old[4]);
      l.held := l.held - @.out_1(old) + @.out_1(one.r);
      l.used := l.used - @.used_1(old) + @.used_1(one.r);
      l.rows := l.rows || jsonb_build_object(one.key, to_jsonb(one.r));
    END LOOP;
  END IF;
  mine := coalesce(@.row_1(l.rows->field), ARRAY[0, 0, 0, 0, 0, 0, 0, 0, 0]::float8[]);
  IF held THEN
    mine[7] := t + lifetime;
    l.earliest := least(l.earliest, mine[7]);
  END IF;
  is_lost := a[4] > mine[1];
  IF is_lost THEN l.quiet_until := t + lifetime; END IF;
  old := mine;
  FOR i IN 1 .. 4 LOOP mine[i] := greatest(mine[i], a[3 + i]); END LOOP;
  -- A process that has received the reset knows best.
  mine[5] := CASE WHEN a[9] < l.epoch THEN greatest(mine[5], a[8]) ELSE a[8] END;
  -- A request that was overtaken by a later one has nothing new. Otherwise the process is alive, so its own counts apply.
  IF a[3] > mine[6] THEN
    mine := mine[1:7] || ARRAY[0, 0]::float8[] || a[17:];
    l.earliest := least(l.earliest, @.due_1(mine));
  END IF;
  l.held := l.held - @.out_1(old) + @.out_1(mine);
  l.used := l.used - @.used_1(old) + @.used_1(mine);

  room := greatest(0, most - l.held);
  IF a[3] > mine[6] AND t >= l.quiet_until THEN
    -- No process may take more than half of the free quota ahead, because the need of the others is unknown.
    ahead := CASE WHEN l.tail OR room <= live THEN a[11] ELSE greatest(a[11], least(a[12], mine[1] + floor(room / 2))) END;
    reached := least(ahead, mine[2] + mine[5] + @.out_1(mine) + room);
    IF reached > mine[1] AND reached >= a[10] THEN
      old := mine;
      mine[1] := reached;
      l.held := l.held - @.out_1(old) + @.out_1(mine);
      l.used := l.used - @.used_1(old) + @.used_1(mine);
    END IF;
    unmet := a[11] > mine[1];
  END IF;
  mine[6] := greatest(mine[6], a[3]);

  free := greatest(0, most - l.held);
  -- The tail ends at more free units per process than it began with. Otherwise it would begin and end repeatedly.
  IF unmet OR free <= live THEN l.tail := true;
  ELSIF free > 2 * live THEN l.tail := false;
  END IF;
  IF is_lost OR l.tail AND NOT was_tail OR before < 1 AND free >= 1 THEN
    l.news_until := t + lifetime;
    l.lost := is_lost OR l.lost AND l.quiet_until > t;
    news := json_build_array('l', id, coalesce(whole, name), o, free, l.tail, l.lost)::text;
  END IF;
  l.expires := CASE WHEN held THEN greatest(l.expires, ceil((t + lifetime + ${KEPT}) / ${KEPT}) * ${KEPT}) ELSE (o + 1) * width + ${KEPT} END;
  UPDATE @.leases SET held = l.held, used = l.used, tail = l.tail, quiet_until = l.quiet_until, epoch = l.epoch, earliest = l.earliest,
    rows = l.rows || jsonb_build_object(field, to_jsonb(mine)), news_until = l.news_until, lost = l.lost, expires = l.expires
  WHERE policy = id AND key = name AND ordinal = o;
  reply := json_build_array(mine[1], free, l.used, l.tail, greatest(0, l.quiet_until - t), l.epoch, t);
END
$body$;
`
