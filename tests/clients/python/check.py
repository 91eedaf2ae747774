"""The ordinary work of the Python libSQL client against one database: execute, executemany, transactions, values,
errors. check.py URL [TOKEN]; the database must be empty or left by an earlier run of this script."""

import sys
import traceback

import libsql

if len(sys.argv) < 2:
    sys.exit("usage: check.py URL [TOKEN]")
URL = sys.argv[1].rstrip("/")
TOKEN = sys.argv[2] if len(sys.argv) > 2 else ""


def connect():
    return libsql.connect(URL, auth_token=TOKEN)


def rows(db, sql, args=()):
    return db.execute(sql, args).fetchall()


def schema(db):
    db.execute("DROP TABLE IF EXISTS item")
    db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, body BLOB, price REAL)")
    db.commit()
    assert rows(db, "SELECT count(*) FROM item") == [(0,)]


def inserts(db):
    cursor = db.execute("INSERT INTO item (name) VALUES (?)", ("first",))
    assert cursor.lastrowid == 1, cursor.lastrowid
    db.executemany("INSERT INTO item (name, price) VALUES (?, ?)", [("second", 1.5), ("third", 2.5)])
    db.commit()
    found = rows(db, "SELECT id, name, price FROM item ORDER BY id")
    assert found == [(1, "first", None), (2, "second", 1.5), (3, "third", 2.5)], found
    names = [column[0] for column in db.execute("SELECT id, name FROM item").description]
    assert names == ["id", "name"], names


def transactions(db):
    db.execute("UPDATE item SET price = 9")
    assert rows(db, "SELECT sum(price) FROM item") == [(27.0,)]
    db.rollback()
    assert rows(db, "SELECT sum(price) FROM item") == [(4.0,)]
    db.execute("DELETE FROM item WHERE id = 3")
    db.commit()
    other = connect()
    assert rows(other, "SELECT count(*) FROM item") == [(2,)]


def values(db):
    for value in [0, -1, 2**31 - 1, -(2**31)]:
        assert rows(db, "SELECT ?, CAST(? AS TEXT)", (value, value)) == [(value, str(value))], value
    # The client sends integers beyond 32 bits as floats; what it receives is exact.
    for value in [2**31, 2**53 + 1, 2**63 - 1, -(2**63) + 1]:
        assert rows(db, f"SELECT {value}") == [(value,)], value
    for value in [None, "ü 🦀 'quoted' \n", "", 0.1, -1.5e300, b"", bytes(range(256)), bytes(1 << 20)]:
        found = rows(db, "SELECT ?", (value,))
        assert found == [(value,)], (value, found)


def errors(db):
    for sql, word in [
        ("SELEC 1", "syntax"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("INSERT INTO item (name) VALUES ('first')", "UNIQUE"),
    ]:
        try:
            db.execute(sql)
        except Exception as error:  # The client has no error types of its own.
            assert word in str(error), (sql, error)
        else:
            raise AssertionError(f"`{sql}` did not fail")
        db.rollback()
        assert rows(db, "SELECT 1") == [(1,)]


def scripts(db):
    db.executescript("DROP TABLE IF EXISTS script; CREATE TABLE script (n); INSERT INTO script VALUES (1), (2);")
    assert rows(db, "SELECT sum(n) FROM script") == [(3,)]


failed = 0
for check in [schema, inserts, transactions, values, errors, scripts]:
    connection = connect()
    try:
        check(connection)
        print(f"ok - {check.__name__}")
    except BaseException:  # A panic of the client's native part is no Exception.
        failed += 1
        print(f"not ok - {check.__name__}")
        traceback.print_exc(file=sys.stdout)
print("all checks passed" if failed == 0 else f"{failed} checks failed")
sys.exit(1 if failed else 0)
