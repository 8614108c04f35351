"""The tables of the index. ``README.md`` of this room explains them; a change of them needs a new ``VERSION``."""

VERSION = 3
"""``PRAGMA user_version``. An index of another version is made again from the run directories."""

TABLES = """
CREATE TABLE run (
  id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, name TEXT NOT NULL, folder TEXT NOT NULL UNIQUE,
  started REAL NOT NULL, started_utc TEXT NOT NULL, rig TEXT NOT NULL, bench TEXT NOT NULL, kernel TEXT NOT NULL,
  kernel_line TEXT NOT NULL, plugpull TEXT NOT NULL, seed INTEGER, verdict TEXT NOT NULL, seconds REAL,
  complete INTEGER NOT NULL, cuts_done INTEGER NOT NULL, cuts_planned INTEGER NOT NULL, declared TEXT NOT NULL,
  sha256 TEXT NOT NULL, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL, dropped INTEGER NOT NULL DEFAULT 0);
CREATE INDEX run_in_order ON run (rig, started, folder);
CREATE TABLE unreadable (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, reason TEXT NOT NULL, bytes INTEGER NOT NULL,
  modified_ns INTEGER NOT NULL);
CREATE TABLE series (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL, scenario TEXT NOT NULL, params_json TEXT NOT NULL,
  rig TEXT NOT NULL, kernel_line TEXT NOT NULL, disk_identity TEXT NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL,
  better TEXT NOT NULL, UNIQUE (key, metric));
CREATE TABLE result (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run (id), series_id INTEGER NOT NULL REFERENCES series (id),
  status TEXT NOT NULL, reason_kind TEXT NOT NULL, reasons_json TEXT NOT NULL, detail TEXT NOT NULL, duration REAL);
CREATE TABLE measure (
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run (id), series_id INTEGER NOT NULL REFERENCES series (id),
  value REAL NOT NULL, n INTEGER NOT NULL, mean REAL, sd REAL, ci_lo REAL, ci_hi REAL, p50 REAL, min REAL,
  samples_json TEXT, other_unit TEXT);
CREATE TABLE note (
  id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES run (id), kind TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE lane (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, started REAL NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL);
CREATE TABLE progress (
  id INTEGER PRIMARY KEY REFERENCES series (id), lane_id INTEGER NOT NULL REFERENCES lane (id), state TEXT NOT NULL);
CREATE TABLE change_point (
  id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL REFERENCES series (id), run_id INTEGER NOT NULL,
  before REAL NOT NULL, after REAL NOT NULL, p REAL NOT NULL);
CREATE TABLE classified (
  id INTEGER PRIMARY KEY REFERENCES series (id), class TEXT NOT NULL, since TEXT, last TEXT, k INTEGER NOT NULL,
  n INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE VIEW v_latest AS
  SELECT series.id AS id, series.name AS name, series.rig AS rig, series.kernel_line AS kernel_line, run.name AS run,
         run.started_utc AS started_utc, result.status AS status, result.reason_kind AS reason_kind,
         result.detail AS detail
  FROM result JOIN series ON series.id = result.series_id JOIN run ON run.id = result.run_id
  WHERE result.id = (SELECT newest.id FROM result AS newest JOIN run AS of ON of.id = newest.run_id
                     WHERE newest.series_id = series.id
                     ORDER BY of.started DESC, of.folder DESC, newest.id DESC LIMIT 1);
CREATE VIEW v_classified AS
  SELECT series.id AS id, series.name AS name, series.rig AS rig, series.kernel_line AS kernel_line,
         series.disk_identity AS disk_identity, class, since, last, k, n, reason
  FROM classified JOIN series ON series.id = classified.id;
"""

INDEXES = """
CREATE INDEX result_of_run ON result (run_id);
CREATE INDEX result_of_series ON result (series_id);
CREATE INDEX measure_of_run ON measure (run_id);
CREATE INDEX measure_of_series ON measure (series_id);
CREATE INDEX note_of_run ON note (run_id);
CREATE INDEX progress_of_lane ON progress (lane_id);
CREATE INDEX change_point_of_series ON change_point (series_id);
"""
"""Made after the rows when an index is made from nothing: that is faster."""

DERIVED = ("progress", "change_point", "classified", "lane")
"""Tables that ``trend`` makes from the others."""
