-- What a store is in PostgreSQL, in its first version.

CREATE TABLE {place} (
    version int NOT NULL,
    identity text NOT NULL  -- of this store, among all there ever were of its name
);
INSERT INTO {place} VALUES (0, md5(random()::text || clock_timestamp()::text));
CREATE SEQUENCE {revisions};
CREATE TABLE {scopes} (
    scope bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,  -- of the key, which may be too long for an index
    key text NOT NULL,
    revision bigint NOT NULL,  -- the last one in this scope
    floor bigint NOT NULL,  -- deletions up to this revision are not known
    deleted bigint NOT NULL DEFAULT 0,  -- rows among the deletions, about
    calls bigint[] NOT NULL DEFAULT '{{}}'  -- the last ones that wrote, by their numbers
) WITH (fillfactor = 50);
CREATE TABLE {memories} (
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,  -- or what stands for it, where it is too long for an index
    long_id text COLLATE "C",
    content text NOT NULL,
    memory_type text NOT NULL CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
    importance float8 NOT NULL CHECK (importance BETWEEN 0 AND 1),
    category text NOT NULL,
    persistent bool NOT NULL,
    ttl_days float8,
    tags text[] NOT NULL,
    metadata json NOT NULL,
    source text NOT NULL,
    created_at float8 NOT NULL,
    updated_at float8 NOT NULL,
    expires_at float8,
    access_count bigint NOT NULL,
    last_accessed float8 NOT NULL,
    fact text COLLATE "C",  -- what equal persistent facts share
    revision bigint NOT NULL,
    PRIMARY KEY (scope, id)
) {partitioned};
CREATE INDEX {memories_by_revision} ON {memories} (scope, revision);
CREATE INDEX {memories_by_time} ON {memories} (scope, created_at DESC);
CREATE INDEX {memories_by_fact} ON {memories} (scope, fact) WHERE fact IS NOT NULL;
CREATE TABLE {deletions} (
    scope bigint NOT NULL,
    revision bigint NOT NULL,
    id text COLLATE "C" NOT NULL,  -- as it was in an index
    deleted text NOT NULL,
    call bigint,  -- which deleted it
    PRIMARY KEY (scope, revision)
);
CREATE TABLE {files} (  -- of the indexes that are made of the memories
    scope bigint NOT NULL,
    name text NOT NULL,
    part int NOT NULL,
    data bytea NOT NULL,
    written timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, name, part)
);
ALTER TABLE {files} ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE {set_aside} (  -- what was no memory any more
    scope bigint NOT NULL,
    content json NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);

-- The number of a scope, of which the transaction sees the rows from now on; 0 for an unknown one.
-- Locks are waited for as many milliseconds.
CREATE FUNCTION {enter}(p_key text, p_wait int) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint;
BEGIN
    PERFORM set_config('lock_timeout', p_wait::text, true);
    SELECT s.scope INTO v_scope FROM {scopes} s
        WHERE s.digest = sha256(convert_to(p_key, 'UTF8'));
    v_scope := coalesce(v_scope, 0);
    PERFORM set_config('retain.scope', v_scope::text, true);
    RETURN v_scope;
END $body$;

-- The same for a writer, who has the scope to himself until the transaction ends: so revisions
-- are seen in their order, whoever commits first.
CREATE FUNCTION {enter_alone}(p_key text, p_wait int, p_make bool) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint;
    v_digest bytea := sha256(convert_to(p_key, 'UTF8'));
BEGIN
    PERFORM set_config('lock_timeout', p_wait::text, true);
    LOOP
        SELECT s.scope INTO v_scope FROM {scopes} s WHERE s.digest = v_digest FOR UPDATE;
        EXIT WHEN FOUND OR NOT p_make;
        INSERT INTO {scopes} (digest, key, revision, floor)
            SELECT v_digest, p_key, r, r FROM nextval('{revisions}') r
            ON CONFLICT (digest) DO NOTHING;
    END LOOP;
    v_scope := coalesce(v_scope, 0);
    PERFORM set_config('retain.scope', v_scope::text, true);
    RETURN v_scope;
END $body$;

-- Delete, then save. A row for each id that was deleted, and one for each memory, by its place
-- among those given: saved, or the equal fact that is there already. A call that is made again, as
-- its answer was lost, is known by its number: it answers as it did, and does nothing.
CREATE FUNCTION {write}(
    p_key text, p_wait int, p_save json, p_delete text[], p_unique bool, p_expect json,
    p_retrieved json, p_call bigint, p_tell text
) RETURNS TABLE (
    deleted text, place int, o_revision bigint, o_count bigint, o_last float8, known json
) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, p_save IS NOT NULL);
    v_last bigint;
    v_done bool;
    v_gone int := 0;
    v_id text;
    r record;
BEGIN
    SELECT p_call = ANY (s.calls) INTO v_done FROM {scopes} s WHERE s.scope = v_scope;
    IF v_done THEN
        RETURN QUERY SELECT * FROM {answer}(v_scope, p_save, p_unique, p_call);
        RETURN;
    END IF;
    FOR r IN SELECT e.key AS id, e.value::bigint AS expected, coalesce(m.revision, 0) AS found,
            coalesce(m.long_id, e.key) AS long_id
        FROM json_each_text(p_expect) e
        LEFT JOIN {memories} m ON m.scope = v_scope AND m.id = e.key
    LOOP
        IF r.found <> r.expected THEN
            RAISE EXCEPTION 'conflict' USING ERRCODE = 'RT001',
                DETAIL = json_build_array(r.long_id, r.found, r.expected)::text;
        END IF;
    END LOOP;
    IF v_scope = 0 THEN
        RETURN;
    END IF;
    IF p_retrieved IS NOT NULL THEN
        UPDATE {memories} m SET
            access_count = least(m.access_count::numeric + t.n, 9223372036854775807)::bigint,
            last_accessed = greatest(m.last_accessed, t.at)
        FROM json_to_recordset(p_retrieved) AS t(id text, n bigint, at float8)
        WHERE m.scope = v_scope AND m.id = t.id;
    END IF;
    IF p_delete IS NOT NULL THEN
        FOREACH v_id IN ARRAY p_delete LOOP
            DELETE FROM {memories} m WHERE m.scope = v_scope AND m.id = v_id
                RETURNING coalesce(m.long_id, m.id) INTO deleted;
            IF FOUND THEN
                v_last := nextval('{revisions}');
                v_gone := v_gone + 1;
                INSERT INTO {deletions} VALUES (v_scope, v_last, v_id, deleted, p_call);
                RETURN NEXT;
            END IF;
        END LOOP;
        deleted := NULL;
    END IF;
    IF (CASE WHEN p_save::text = '"distinct"' THEN {all_new}(v_scope) ELSE false END) THEN
        -- The same for many that are in nobody's way: one statement, not one for each.
        RETURN QUERY EXECUTE $new$
            WITH saved AS (
                INSERT INTO {memories} AS m SELECT {distinct_values}
                FROM (SELECT * FROM pg_temp.retain_incoming ORDER BY n) i
                RETURNING m.revision, m.access_count, m.last_accessed
            )
            SELECT NULL::text, (row_number() OVER (ORDER BY s.revision) - 1)::int,
                s.revision, s.access_count, s.last_accessed, NULL::json FROM saved s
        $new$ USING v_scope;
        v_last := currval('{revisions}');
        p_save := NULL;
    END IF;
    FOR r IN SELECT * FROM {incoming}(p_save) LOOP
        place := r.n;
        IF p_unique AND r.fact IS NOT NULL THEN
            {equal}
            IF known IS NOT NULL THEN
                RETURN NEXT;
                known := NULL;
                CONTINUE;
            END IF;
        END IF;
        {upsert}
        RETURNING m.revision, m.access_count, m.last_accessed INTO o_revision, o_count, o_last;
        v_last := o_revision;
        RETURN NEXT;
    END LOOP;
    IF v_last IS NOT NULL OR p_retrieved IS NOT NULL THEN
        UPDATE {scopes} s SET revision = coalesce(v_last, s.revision),
            deleted = s.deleted + v_gone, calls = (p_call || s.calls)[1:16]
            WHERE s.scope = v_scope RETURNING s.deleted INTO v_gone;
        IF v_gone > 2 * {most} THEN
            PERFORM {trim}(v_scope);
        END IF;
        IF p_tell IS NOT NULL AND v_last IS NOT NULL THEN
            PERFORM pg_notify(p_tell, md5(p_key));
        END IF;
    END IF;
END $body$;

-- What a write that is done already answers; of what another has deleted since, what it was given.
CREATE FUNCTION {answer}(p_scope bigint, p_save json, p_unique bool, p_call bigint)
RETURNS TABLE (
    deleted text, place int, o_revision bigint, o_count bigint, o_last float8, known json
) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := p_scope;
    r record;
BEGIN
    FOR deleted IN SELECT d.deleted FROM {deletions} d
        WHERE d.scope = v_scope AND d.call = p_call ORDER BY d.revision
    LOOP
        RETURN NEXT;
    END LOOP;
    deleted := NULL;
    FOR r IN SELECT * FROM {incoming}(p_save) LOOP
        place := r.n;
        known := NULL;
        IF p_unique AND r.fact IS NOT NULL THEN
            {equal}
        END IF;
        IF known IS NULL THEN
            SELECT m.revision, m.access_count, m.last_accessed INTO o_revision, o_count, o_last
                FROM {memories} m WHERE m.scope = v_scope AND m.id = r.id;
            o_revision := coalesce(o_revision, 0);
            o_count := coalesce(o_count, r.access_count);
            o_last := coalesce(o_last, r.last_accessed);
        END IF;
        RETURN NEXT;
    END LOOP;
END $body$;

-- The same as one value, for whoever gets so many rows and no more.
CREATE FUNCTION {write_json}(
    p_key text, p_wait int, p_save json, p_delete text[], p_unique bool, p_expect json,
    p_retrieved json, p_call bigint, p_tell text
) RETURNS json LANGUAGE sql AS $body$
    SELECT coalesce(json_agg(w), '[]') FROM {write}(
        p_key, p_wait, p_save, p_delete, p_unique, p_expect, p_retrieved, p_call, p_tell) w
$body$;

-- Which store it is, and the version of what is here.
CREATE FUNCTION {about}(p_wait int) RETURNS TABLE (version int, identity text) LANGUAGE sql
AS $body$
    SELECT p.version, p.identity FROM {place} p
$body$;

-- The commonest write, of one memory alone: the same in fewer steps.
CREATE FUNCTION {put}(
    p_key text, p_wait int, p_unique bool, p_tell text, p_n int, p_long_id text, p_fact text,
    p_expires_at float8, {parameters}
) RETURNS TABLE (
    deleted text, place int, o_revision bigint, o_count bigint, o_last float8, known json
) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint;
    v_digest bytea := sha256(convert_to(p_key, 'UTF8'));
    v_set text := set_config('lock_timeout', p_wait::text, true);
BEGIN
    LOOP
        UPDATE {scopes} s SET revision = nextval('{revisions}') WHERE s.digest = v_digest
            RETURNING s.scope, s.revision INTO v_scope, o_revision;
        EXIT WHEN FOUND;
        v_scope := {enter_alone}(p_key, p_wait, true);
    END LOOP;
    v_set := set_config('retain.scope', v_scope::text, true);
    place := p_n;
    IF p_unique AND p_fact IS NOT NULL THEN
        {put_equal}
    END IF;
    IF known IS NULL THEN
        {put_save}
        RETURNING m.access_count, m.last_accessed INTO o_count, o_last;
        IF p_tell IS NOT NULL THEN
            PERFORM pg_notify(p_tell, md5(p_key));
        END IF;
    END IF;
    RETURN NEXT;
END $body$;

-- Whether no memory of a scope has an id of those that were copied. Asked one by one: what was just
-- copied has no statistics, and the scope may be large.
CREATE FUNCTION {all_new}(p_scope bigint) RETURNS bool LANGUAGE plpgsql AS $body$
DECLARE
    v_known bool;
BEGIN
    EXECUTE $new$
        SELECT EXISTS (SELECT 1 FROM pg_temp.retain_incoming i, LATERAL (
            SELECT 1 FROM {memories} m WHERE m.scope = $1 AND m.id = i.id LIMIT 1
        ) k)
    $new$ INTO v_known USING p_scope;
    RETURN NOT v_known;
END $body$;

-- What is to be saved: of the argument, or of what was copied into a table of the session before.
CREATE FUNCTION {incoming}(p_save json)
RETURNS TABLE (n int, long_id text, fact text, expires_at float8, {row})
LANGUAGE plpgsql AS $body$
BEGIN
    IF p_save::text IN ('"copied"', '"distinct"') THEN
        RETURN QUERY EXECUTE 'SELECT * FROM pg_temp.retain_incoming ORDER BY n';
    ELSIF p_save IS NOT NULL THEN
        RETURN QUERY SELECT * FROM json_to_recordset(p_save)
            AS t(n int, long_id text, fact text, expires_at float8, {row});
    END IF;
END $body$;

-- Forget the oldest deletions; whoever has not caught up with them begins anew.
CREATE FUNCTION {trim}(p_scope bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_last bigint;
BEGIN
    SELECT d.revision INTO v_last FROM {deletions} d WHERE d.scope = p_scope
        ORDER BY d.revision DESC LIMIT 1 OFFSET {most};
    DELETE FROM {deletions} d WHERE d.scope = p_scope AND d.revision <= v_last;
    UPDATE {scopes} s SET floor = greatest(s.floor, coalesce(v_last, 0)), deleted = {most}
        WHERE s.scope = p_scope;
END $body$;

CREATE FUNCTION {fetch}(p_key text, p_wait int, p_ids text[]) RETURNS TABLE ({row})
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT {columns} FROM {memories} m
        WHERE m.scope = v_scope AND m.id = ANY (p_ids);
END $body$;

-- The condition of a listing, for a statement in which $1 is the scope and the others follow.
CREATE FUNCTION {condition}({narrow}) RETURNS text LANGUAGE sql IMMUTABLE AS $body$
    SELECT concat_ws(' AND ',
        'm.scope = $1',
        CASE WHEN p_expired THEN 'm.expires_at <= $2'
            ELSE '(m.expires_at IS NULL OR m.expires_at > $2)' END,
        CASE WHEN p_type IS NOT NULL THEN 'm.memory_type = $4' END,
        CASE WHEN p_category IS NOT NULL THEN 'm.category = $5' END,
        CASE WHEN p_tags IS NOT NULL THEN 'm.tags @> $6' END,
        CASE WHEN p_importance IS NOT NULL THEN 'm.importance >= $7' END,
        CASE WHEN p_since IS NOT NULL THEN 'm.created_at >= $8' END,
        CASE WHEN p_until IS NOT NULL THEN 'm.created_at < $9' END,
        CASE WHEN p_persistent IS NOT NULL THEN 'm.persistent = $10' END)
$body$;

CREATE FUNCTION {list}(
    p_key text, p_wait int, {narrow}, p_order text, p_most bigint,
    p_after_importance float8, p_after_created float8, p_after_id text
) RETURNS TABLE ({row}) LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY EXECUTE concat(
        'SELECT {columns} FROM {memories} m WHERE ',
        {condition}({narrowed}),
        CASE WHEN p_after_id IS NOT NULL THEN CASE p_order
            WHEN 'newest' THEN
                ' AND m.created_at <= $12 AND (m.created_at < $12 OR {id} > $13)'
            WHEN 'important' THEN
                ' AND (-m.importance, -m.created_at, {id}) > (-$11, -$12, $13)'
            ELSE ' AND (m.importance, m.created_at, {id}) > ($11, $12, $13)'
        END END,
        ' ORDER BY ', CASE p_order
            WHEN 'newest' THEN 'm.created_at DESC, {id}'
            WHEN 'important' THEN 'm.importance DESC, m.created_at DESC, {id}'
            ELSE 'm.importance, m.created_at, {id}' END,
        ' LIMIT $14')
    USING v_scope, p_now, p_expired, p_type, p_category, p_tags, p_importance, p_since, p_until,
        p_persistent, p_after_importance, p_after_created, p_after_id, p_most;
END $body$;

CREATE FUNCTION {count}(p_key text, p_wait int, {narrow}) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
    v_count bigint;
BEGIN
    EXECUTE concat('SELECT count(*) FROM {memories} m WHERE ', {condition}({narrowed}))
        INTO v_count
        USING v_scope, p_now, p_expired, p_type, p_category, p_tags, p_importance, p_since,
            p_until, p_persistent;
    RETURN v_count;
END $body$;

-- The scope's revision, whether what is known of it is void, and what was deleted.
CREATE FUNCTION {changes}(p_key text, p_wait int, p_since bigint)
RETURNS TABLE (revision bigint, reset bool, deleted text[]) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
    v_floor bigint;
BEGIN
    SELECT s.revision, s.floor INTO revision, v_floor FROM {scopes} s WHERE s.scope = v_scope;
    revision := coalesce(revision, 0);
    reset := p_since < coalesce(v_floor, 0) OR p_since > revision;
    IF p_since > 0 AND p_since < revision AND NOT reset THEN
        deleted := ARRAY(SELECT d.deleted FROM {deletions} d
            WHERE d.scope = v_scope AND d.revision > p_since ORDER BY d.revision);
    END IF;
    RETURN NEXT;
END $body$;

CREATE FUNCTION {saved}(
    p_key text, p_wait int, p_since bigint, p_until bigint, p_most int
) RETURNS TABLE ({row}) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT {columns} FROM {memories} m
        WHERE m.scope = v_scope AND m.revision > p_since AND m.revision <= p_until
        ORDER BY m.revision LIMIT p_most;
END $body$;

-- The last revision that was given.
CREATE FUNCTION {last}(p_wait int) RETURNS bigint LANGUAGE sql AS $body$
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {revisions}
$body$;

CREATE FUNCTION {all_scopes}(p_wait int, p_after bigint, p_most int)
RETURNS TABLE (scope bigint, key text) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
BEGIN
    PERFORM set_config('lock_timeout', p_wait::text, true);
    PERFORM set_config('retain.scope', '*', true);
    RETURN QUERY SELECT s.scope, s.key FROM {scopes} s
        WHERE s.scope > p_after AND EXISTS (SELECT 1 FROM {memories} m WHERE m.scope = s.scope)
        ORDER BY s.scope LIMIT p_most;
END $body$;

CREATE FUNCTION {forget_scope}(p_key text, p_wait int, p_tell text) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
    v_count bigint;
BEGIN
    DELETE FROM {memories} m WHERE m.scope = v_scope;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM {deletions} d WHERE d.scope = v_scope;
    DELETE FROM {files} f WHERE f.scope = v_scope;
    DELETE FROM {set_aside} a WHERE a.scope = v_scope;
    DELETE FROM {scopes} s WHERE s.scope = v_scope;
    IF v_scope > 0 THEN
        PERFORM nextval('{revisions}');  -- so that a scope of that name begins beyond it
        IF p_tell IS NOT NULL THEN
            PERFORM pg_notify(p_tell, md5(p_key));
        END IF;
    END IF;
    RETURN v_count;
END $body$;

-- Every row with what was derived of it, for a check.
CREATE FUNCTION {inspect}(p_key text, p_wait int, p_after text, p_most int)
RETURNS TABLE (key text, fact text, expires_at float8, last bigint, {row})
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT m.id, m.fact, m.expires_at, s.revision, {columns}
        FROM {memories} m JOIN {scopes} s ON s.scope = m.scope
        WHERE m.scope = v_scope AND m.id > p_after COLLATE "C" ORDER BY m.id LIMIT p_most;
END $body$;

-- Take rows that are no memories out of the way, and keep them.
CREATE FUNCTION {put_aside}(p_key text, p_wait int, p_ids text[]) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
BEGIN
    INSERT INTO {set_aside} (scope, content)
        SELECT v_scope, to_json(m) FROM {memories} m
        WHERE m.scope = v_scope AND m.id = ANY (p_ids);
    PERFORM {write}(p_key, p_wait, NULL, p_ids, false, NULL, NULL, NULL, NULL);
END $body$;

-- The files of a scope's index.
CREATE FUNCTION {file_names}(p_key text, p_wait int)
RETURNS TABLE (name text, age float8) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT f.name, extract(epoch FROM now() - f.written)::float8 FROM {files} f
        WHERE f.scope = v_scope AND f.part = 0 ORDER BY f.name;
END $body$;

CREATE FUNCTION {file_part}(p_key text, p_wait int, p_name text, p_part int) RETURNS bytea
LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN (SELECT f.data FROM {files} f
        WHERE f.scope = v_scope AND f.name = p_name AND f.part = p_part);
END $body$;

-- The last part first and part 0, by which a file is known, at the end: half a file is none.
CREATE FUNCTION {put_part}(p_key text, p_wait int, p_name text, p_part int, p_data bytea)
RETURNS bool LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    INSERT INTO {files} AS f (scope, name, part, data)
        SELECT s.scope, p_name, p_part, p_data FROM {scopes} s
        WHERE s.scope = v_scope FOR SHARE
        ON CONFLICT (scope, name, part) DO UPDATE SET data = excluded.data, written = now();
    RETURN FOUND;
END $body$;

CREATE FUNCTION {drop_files}(p_key text, p_wait int, p_names text[], p_abandoned float8)
RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    DELETE FROM {files} f WHERE f.scope = v_scope AND (p_names IS NULL OR f.name = ANY (p_names)
        OR (f.written < now() - make_interval(secs => p_abandoned) AND NOT EXISTS (
            SELECT 1 FROM {files} g
            WHERE g.scope = v_scope AND g.name = f.name AND g.part = 0)));
END $body$;
