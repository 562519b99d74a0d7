-- A side index by which scopes are searched where they are stored. What stands in braces is filled
-- in by postgres_search.py.

CREATE SCHEMA {s};
CREATE TABLE {s}.level (
    scope bigint PRIMARY KEY,
    revision bigint NOT NULL DEFAULT 0,  -- of the scope, up to which its memories are in here
    rows bigint NOT NULL DEFAULT 0,
    measured bigint NOT NULL DEFAULT 0,  -- rows when what follows was measured
    short int NOT NULL DEFAULT 0,  -- terms that a quarter of the texts don't exceed
    sessions bigint NOT NULL DEFAULT 0,
    turns float8 NOT NULL DEFAULT 0,  -- terms of a session, on the average
    near bool NOT NULL DEFAULT false  -- whether its vectors have an index
);
CREATE TABLE {s}.terms (
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    long_id text COLLATE "C",
    revision bigint NOT NULL,
    created_at float8 NOT NULL,
    expires_at float8,
    importance float8 NOT NULL,
    memory_type text NOT NULL,
    persistent bool NOT NULL,
    session bigint NOT NULL,  -- a hash, 0 for none
    turn bigint NOT NULL,
    length int NOT NULL,
    terms bytea NOT NULL,  -- eight bytes for each occurrence
    keys bigint[] NOT NULL,
    embedded bool NOT NULL,  -- whether its vector was made; one of zeros is NULL
    {vector}
    PRIMARY KEY (scope, id)
);
ALTER TABLE {s}.terms ALTER COLUMN terms SET STORAGE EXTERNAL;
CREATE INDEX terms_by_key ON {s}.terms USING gin (keys) WITH (gin_pending_list_limit = 1024);
CREATE INDEX terms_by_time ON {s}.terms (scope, created_at DESC);
CREATE INDEX terms_by_importance ON {s}.terms (scope, importance DESC, created_at DESC);
CREATE INDEX terms_by_session ON {s}.terms (scope, session, created_at, turn, revision)
    WHERE session <> 0;
CREATE INDEX terms_bare ON {s}.terms (scope, id) WHERE NOT embedded;
CREATE TABLE {s}.counts (  -- of a term, or of a session: who holds it, and their terms together
    scope bigint NOT NULL,
    term bigint NOT NULL,
    n bigint NOT NULL,
    length bigint NOT NULL,
    PRIMARY KEY (scope, term)
) WITH (fillfactor = 80);

ALTER TABLE {s}.terms ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_scope ON {s}.terms
    USING (current_setting('retain.scope', true) IN (scope::text, '*'))
    WITH CHECK (current_setting('retain.scope', true) IN (scope::text, '*'));
ALTER TABLE {s}.counts ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_scope ON {s}.counts
    USING (current_setting('retain.scope', true) IN (scope::text, '*'))
    WITH CHECK (current_setting('retain.scope', true) IN (scope::text, '*'));
ALTER TABLE {s}.level ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_scope ON {s}.level
    USING (current_setting('retain.scope', true) IN (scope::text, '*'))
    WITH CHECK (current_setting('retain.scope', true) IN (scope::text, '*'));
ALTER TABLE {s}.counts FORCE ROW LEVEL SECURITY;
ALTER TABLE {s}.level FORCE ROW LEVEL SECURITY;

-- Rows that leave the memories, or change there, leave this too; and what was counted of them.
CREATE FUNCTION {s}.leave() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_scope bigint;
    v_left bigint := 0;
    v_terms bigint[];
    v_n bigint[];
    v_length bigint[];
BEGIN
    IF TG_OP = 'DELETE' THEN
        SELECT g.scope INTO v_scope FROM gone g LIMIT 1;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        IF NOT EXISTS (SELECT 1 FROM {memories} m WHERE m.scope = v_scope) THEN
            DELETE FROM {s}.terms t WHERE t.scope = v_scope;
            DELETE FROM {s}.counts c WHERE c.scope = v_scope;
            UPDATE {s}.level l SET rows = 0, measured = 0 WHERE l.scope = v_scope;
            RETURN NULL;
        END IF;
        WITH dead AS (
            DELETE FROM {s}.terms t USING gone g WHERE t.scope = g.scope AND t.id = g.id
            RETURNING t.scope, t.keys, t.length
        ), lost AS (
            SELECT d.scope, k # d.scope AS term, count(*) AS n, sum(d.length) AS length
            FROM dead d, unnest(d.keys) k GROUP BY 1, 2
        )
        SELECT max(l.scope), array_agg(l.term), array_agg(l.n), array_agg(l.length),
            (SELECT count(*) FROM dead)
            INTO v_scope, v_terms, v_n, v_length, v_left FROM lost l;
    ELSE
        WITH dead AS (
            DELETE FROM {s}.terms t USING gone g JOIN come c ON c.scope = g.scope AND c.id = g.id
            WHERE c.revision <> g.revision AND t.scope = g.scope AND t.id = g.id
            RETURNING t.scope, t.keys, t.length
        ), lost AS (
            SELECT d.scope, k # d.scope AS term, count(*) AS n, sum(d.length) AS length
            FROM dead d, unnest(d.keys) k GROUP BY 1, 2
        )
        SELECT max(l.scope), array_agg(l.term), array_agg(l.n), array_agg(l.length),
            (SELECT count(*) FROM dead)
            INTO v_scope, v_terms, v_n, v_length, v_left FROM lost l;
    END IF;
    IF v_left > 0 THEN
        UPDATE {s}.level l SET rows = l.rows - v_left WHERE l.scope = v_scope;
        UPDATE {s}.counts c SET n = c.n - g.n, length = c.length - g.length
            FROM unnest(v_terms, v_n, v_length) AS g(term, n, length)
            WHERE c.scope = v_scope AND c.term = g.term;
        DELETE FROM {s}.counts c
            WHERE c.scope = v_scope AND c.term = ANY (v_terms) AND c.n <= 0;
    END IF;
    RETURN NULL;
END $body$;
CREATE TRIGGER {trigger}_delete AFTER DELETE ON {memories}
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION {s}.leave();
CREATE TRIGGER {trigger}_update AFTER UPDATE ON {memories}
    REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT
    EXECUTE FUNCTION {s}.leave();

-- How far a scope's index goes, what it counts, and how many of its memories hold each term.
CREATE FUNCTION {s}.state(p_key text, p_wait int, p_terms bigint[])
RETURNS TABLE (known bigint, revision bigint, rows bigint, measured bigint, short int,
    sessions bigint, turns float8, near bool, bare bool, counts bigint[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT s.revision, coalesce(l.revision, 0), coalesce(l.rows, 0),
        coalesce(l.measured, 0), coalesce(l.short, 0), coalesce(l.sessions, 0),
        coalesce(l.turns, 0), coalesce(l.near, false),
        EXISTS (SELECT 1 FROM {s}.terms t WHERE t.scope = v_scope AND NOT t.embedded),
        ARRAY(SELECT coalesce(c.n, 0) FROM unnest(p_terms) WITH ORDINALITY AS u(term, place)
            LEFT JOIN {s}.counts c ON c.scope = v_scope AND c.term = u.term ORDER BY u.place)
        FROM {scopes} s LEFT JOIN {s}.level l ON l.scope = s.scope WHERE s.scope = v_scope;
END $body$;

-- Take in what was saved after one revision, up to another; false where another was quicker.
-- What changed again meanwhile stays out: it comes with its later revision.
CREATE FUNCTION {s}.put(
    p_key text, p_wait int, p_since bigint, p_until bigint, p_rows json
) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
    v_revision bigint;
    v_count bigint;
BEGIN
    IF v_scope = 0 THEN
        RETURN true;
    END IF;
    INSERT INTO {s}.level (scope) VALUES (v_scope) ON CONFLICT DO NOTHING;
    SELECT l.revision INTO v_revision FROM {s}.level l WHERE l.scope = v_scope FOR UPDATE;
    IF v_revision <> p_since THEN
        RETURN false;
    END IF;
    WITH new AS (
        INSERT INTO {s}.terms AS t SELECT m.scope, m.id, m.long_id, m.revision, m.created_at,
            m.expires_at, m.importance, m.memory_type, m.persistent, r.session, r.turn, r.length,
            decode(r.terms, 'hex'), ARRAY(SELECT k # v_scope FROM unnest(r.keys) k),
            r.embedded{put_vector}
        FROM json_to_recordset(p_rows) AS r(id text, revision bigint, session bigint,
            turn bigint, length int, terms text, keys bigint[], embedded bool, vector text)
        JOIN {memories} m ON m.scope = v_scope AND m.id = r.id AND m.revision = r.revision
        RETURNING t.keys, t.length
    ), held AS (
        INSERT INTO {s}.counts AS c
            SELECT v_scope, k # v_scope, count(*), sum(n.length) FROM new n, unnest(n.keys) k
            GROUP BY 2 ORDER BY 2
        ON CONFLICT (scope, term)
            DO UPDATE SET n = c.n + excluded.n, length = c.length + excluded.length
    )
    SELECT count(*) INTO v_count FROM new;
    UPDATE {s}.level l SET revision = p_until, rows = l.rows + v_count WHERE l.scope = v_scope;
    RETURN true;
END $body$;

-- Forget a scope, so that it is made anew.
CREATE FUNCTION {s}.clear(p_key text, p_wait int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
BEGIN
    DELETE FROM {s}.terms t WHERE t.scope = v_scope;
    DELETE FROM {s}.counts c WHERE c.scope = v_scope;
    UPDATE {s}.level l SET revision = 0, rows = 0, measured = 0 WHERE l.scope = v_scope;
END $body$;

-- What waits for its vector.
CREATE FUNCTION {s}.bare(p_key text, p_wait int, p_most int) RETURNS TABLE (id text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    RETURN QUERY SELECT coalesce(t.long_id, t.id) FROM {s}.terms t
        WHERE t.scope = v_scope AND NOT t.embedded ORDER BY t.id LIMIT p_most;
END $body$;

-- Give vectors to those that are still at the revision of which they were made.
CREATE FUNCTION {s}.dress(p_key text, p_wait int, p_rows json) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_scope bigint := {enter_alone}(p_key, p_wait, false);
BEGIN
    UPDATE {s}.terms t SET embedded = true{set_vector}
        FROM json_to_recordset(p_rows) AS r(id text, revision bigint, vector text)
        WHERE t.scope = v_scope AND t.id = r.id AND t.revision = r.revision;
END $body$;

-- What is costly to count exactly at each change. The number of the scope.
CREATE FUNCTION {s}.measure(p_key text, p_wait int, p_near bool) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
BEGIN
    UPDATE {s}.level l SET near = coalesce(p_near, l.near), measured = l.rows, short = x.short,
        sessions = x.sessions, turns = x.length / greatest(x.sessions, 1)
    FROM (SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY t.length) AS short,
            count(DISTINCT t.session) FILTER (WHERE t.session <> 0) AS sessions,
            coalesce(sum(t.length) FILTER (WHERE t.session <> 0), 0)::float8 AS length
        FROM {s}.terms t WHERE t.scope = v_scope) x
    WHERE l.scope = v_scope AND l.rows > 0;
    RETURN v_scope;
END $body$;

-- The turns around one in its session: their ids, and on which side.
CREATE FUNCTION {s}.beside(p_key text, p_wait int, p_id text, p_most int)
RETURNS TABLE (id text) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
#variable_conflict use_column
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
    c record;
BEGIN
    SELECT * INTO c FROM {s}.terms t WHERE t.scope = v_scope AND t.id = p_id AND t.session <> 0;
    IF FOUND THEN
        RETURN QUERY SELECT x.id FROM (
            (SELECT coalesce(t.long_id, t.id) AS id, t.created_at, t.turn, t.revision
            FROM {s}.terms t WHERE t.scope = v_scope AND t.session = c.session
                AND t.session <> 0 AND (t.created_at, t.turn, t.revision)
                < (c.created_at, c.turn, c.revision)
            ORDER BY t.created_at DESC, t.turn DESC, t.revision DESC LIMIT p_most)
            UNION ALL
            (SELECT coalesce(t.long_id, t.id) AS id, t.created_at, t.turn, t.revision
            FROM {s}.terms t WHERE t.scope = v_scope AND t.session = c.session
                AND t.session <> 0 AND (t.created_at, t.turn, t.revision)
                > (c.created_at, c.turn, c.revision)
            ORDER BY t.created_at, t.turn, t.revision LIMIT p_most)
        ) x ORDER BY x.created_at, x.turn, x.revision;
    END IF;
END $body$;

-- The plan must not hang on statistics: lists of a GIN index for terms, an ordered index for what
-- is newest or most important, and rows by their place for all that is chosen.
CREATE FUNCTION {s}.offer(
    p_key text, p_wait int, p_now float8, p_type text, p_importance float8, p_since float8,
    p_until float8, p_persistent bool, p_labels bigint[], p_probes json, p_common bigint[],
    p_together json, p_walk int, p_starts float8[], p_ends float8[], p_half_life float8,
    p_vector text, p_alike int, p_most int
) RETURNS TABLE (
    ids text[], keys text[], before json, after json, revision bytea, created bytea,
    expires bytea, importance bytea, kinds text[], persistent bool[], session bytea, turn bytea,
    length bytea, size bytea, terms bytea, session_length bytea, similarity bytea
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_sort = off SET jit = off AS $body$
DECLARE
    v_scope bigint := {enter}(p_key, p_wait);
    v_labels bigint[] := ARRAY(SELECT k # v_scope FROM unnest(p_labels) k);
    v_common bigint[] := ARRAY(SELECT k # v_scope FROM unnest(p_common) k);
    v_narrow text := concat_ws(' AND ', '(t.expires_at IS NULL OR t.expires_at > $2)',
        CASE WHEN p_type IS NOT NULL THEN 't.memory_type = $3' END,
        CASE WHEN p_importance IS NOT NULL THEN 't.importance >= $4' END,
        CASE WHEN p_since IS NOT NULL THEN 't.created_at >= $5' END,
        CASE WHEN p_until IS NOT NULL THEN 't.created_at < $6' END,
        CASE WHEN p_persistent IS NOT NULL THEN 't.persistent = $7' END);
    -- "+ 0": not by an index of the scope; "IS TRUE": not by the one of the terms.
    v_by_term text := concat_ws(' AND ', 't.scope + 0 = $1', v_narrow,
        CASE WHEN v_labels <> '{{}}' THEN 't.keys @> $8' END);
    v_in_order text := concat_ws(' AND ', 't.scope = $1', v_narrow,
        CASE WHEN v_labels <> '{{}}' THEN '(t.keys @> $8) IS TRUE' END);
    v_some text := CASE WHEN v_common <> '{{}}' THEN ' AND (t.keys && $9) IS TRUE' ELSE '' END;
    v_worth text := '0.3 * exp(-least(700, 0.6931471805599453
        * greatest(0, $2 - t.created_at) / $14)) + 0.2 * t.importance';
    v_parts text[];
BEGIN
    IF p_probes IS NOT NULL THEN
        v_parts := v_parts || ('(SELECT t.at FROM ('
            'SELECT t.at, sum(t.weight) + max(t.worth) AS total FROM ('
            'SELECT t.ctid AS at, p.weight, ' || v_worth || ' AS worth FROM probes p, '
            '{s}.terms t WHERE t.keys && p.keys AND ' || v_by_term || ') t GROUP BY t.at) t '
            'ORDER BY t.total DESC LIMIT $16)');
    END IF;
    IF p_together IS NOT NULL THEN
        v_parts := v_parts || ('(SELECT t.at FROM ('
            'SELECT t.at, sum(t.weight) + max(t.worth) AS total FROM ('
            'SELECT t.ctid AS at, p.weight, ' || v_worth || ' AS worth FROM pairs p, '
            '{s}.terms t WHERE t.keys @> p.keys AND ' || v_by_term || ') t GROUP BY t.at) t '
            'ORDER BY t.total DESC LIMIT $16)');
    END IF;
    IF p_walk > 0 THEN
        v_parts := v_parts || ('(SELECT t.ctid AS at FROM {s}.terms t WHERE ' || v_in_order
            || v_some || ' ORDER BY t.created_at DESC LIMIT $11)')
            || ('(SELECT t.ctid AS at FROM {s}.terms t WHERE ' || v_in_order
            || v_some || ' ORDER BY t.importance DESC, t.created_at DESC LIMIT $11)');
    END IF;
    IF p_starts <> '{{}}' THEN
        v_parts := v_parts || ('(SELECT t.at FROM unnest($12, $13) AS w(begins, ends), LATERAL ('
            'SELECT t.ctid AS at FROM {s}.terms t WHERE ' || v_in_order
            || ' AND t.created_at >= w.begins AND t.created_at < w.ends '
            'ORDER BY t.created_at DESC LIMIT {at_a_time}) t LIMIT $16)');
    END IF;
    IF p_vector IS NOT NULL THEN
        PERFORM set_config('hnsw.ef_search', least(1000, greatest(40, p_alike))::text, true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true);
        v_parts := v_parts || replace('(SELECT t.ctid AS at FROM {s}.terms t WHERE ' || v_in_order
            || ' AND t.vector IS NOT NULL ORDER BY t.vector {distance} $15::{half} LIMIT $17)',
            't.scope = $1', format('t.scope = %s', v_scope));
    END IF;
    IF v_parts IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format('
        WITH probes AS MATERIALIZED (
            SELECT ARRAY(SELECT k # $1 FROM unnest(p.keys) k) AS keys, p.weight
            FROM json_to_recordset($18) AS p(keys bigint[], weight float8)),
        pairs AS MATERIALIZED (
            SELECT ARRAY(SELECT k # $1 FROM unnest(p.keys) k) AS keys, p.weight
            FROM json_to_recordset($10) AS p(keys bigint[], weight float8)),
        parts AS MATERIALIZED (%s),
        centres AS MATERIALIZED (
            SELECT t.ctid AS at, t.session, t.created_at, t.turn, t.revision
            FROM {s}.terms t WHERE t.session <> 0 AND t.ctid = ANY (ARRAY(
                SELECT p.at FROM parts p WHERE p.place <= {centres}))),
        beside AS MATERIALIZED (
            SELECT c.at,
                ARRAY(SELECT b.ctid FROM {s}.terms b WHERE b.scope = $1 AND b.session = c.session
                    AND b.session <> 0 AND (b.created_at, b.turn, b.revision)
                        < (c.created_at, c.turn, c.revision)
                    ORDER BY b.created_at DESC, b.turn DESC, b.revision DESC LIMIT {beside})
                    AS before,
                ARRAY(SELECT b.ctid FROM {s}.terms b WHERE b.scope = $1 AND b.session = c.session
                    AND b.session <> 0 AND (b.created_at, b.turn, b.revision)
                        > (c.created_at, c.turn, c.revision)
                    ORDER BY b.created_at, b.turn, b.revision LIMIT {beside}) AS after
            FROM centres c),
        chosen AS MATERIALIZED (
            SELECT p.at FROM parts p UNION SELECT unnest(b.before || b.after) FROM beside b),
        found AS MATERIALIZED (
            SELECT t.ctid AS at, t.*, {similar} AS similarity FROM {s}.terms t
            WHERE t.scope + 0 = $1 AND t.ctid = ANY (ARRAY(SELECT at FROM chosen))),
        lengths AS MATERIALIZED (
            SELECT c.term, c.length FROM {s}.counts c WHERE c.scope = $1
                AND c.term = ANY (ARRAY(SELECT DISTINCT f.session FROM found f)))
        SELECT array_agg(coalesce(f.long_id, f.id)), array_agg(f.at::text),
            (SELECT json_object_agg(b.at, b.before) FROM beside b),
            (SELECT json_object_agg(b.at, b.after) FROM beside b),
            string_agg(int8send(f.revision), ''''), string_agg(float8send(f.created_at), ''''),
            string_agg(float8send(coalesce(f.expires_at, ''Infinity'')), ''''),
            string_agg(float8send(f.importance), ''''), array_agg(f.memory_type),
            array_agg(f.persistent), string_agg(int8send(f.session), ''''),
            string_agg(int8send(f.turn), ''''), string_agg(int4send(f.length), ''''),
            string_agg(int4send(octet_length(f.terms)), ''''), string_agg(f.terms, ''''),
            (SELECT string_agg(int8send(l.term) || int8send(l.length), '''') FROM lengths l),
            string_agg(float8send(coalesce(f.similarity, ''NaN'')), '''')
        FROM found f',
        (SELECT string_agg('SELECT x.at, row_number() OVER () AS place FROM ' || part || ' x',
            ' UNION ALL ') FROM unnest(v_parts) part))
    USING v_scope, p_now, p_type, p_importance, p_since, p_until, p_persistent, v_labels,
        v_common, p_together, p_walk, p_starts, p_ends, p_half_life, p_vector, p_most, p_alike,
        p_probes;
END $body$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {s} FROM PUBLIC;
