"""The same searches as `reachy-remembers bench`, in the Python build of the same engine, over a copy of the same shard.

    python bench_python.py SHARD QUERIES.json ROUNDS

QUERIES.json: {"queries": [{"vector": [...], "terms": [...]}, ...], "limit": 20}. Prints one JSON object: for each kind of
search the milliseconds of every call. Needs qdrant-edge-py.
"""

import json
import sys
import time

from qdrant_edge import (
    CountRequest,
    Direction,
    EdgeShard,
    FieldCondition,
    Filter,
    MatchValue,
    OrderBy,
    PayloadSelector,
    Query,
    QueryBatchRequest,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    SparseVector,
)

WITHOUT_PICTURES = PayloadSelector.Exclude(["jpeg"])


def kind(name):
    return Filter(must=[FieldCondition(key="kind", match=MatchValue(value=name))])


def nearest(vector, using):
    return Query.Nearest(vector, using=using)


def dense(query, what, limit):
    return QueryRequest(
        limit=limit, query=nearest(query["vector"], "text"), filter=kind(what), with_payload=WITHOUT_PICTURES
    )


def one(term):
    sparse = SparseVector(indices=[term], values=[1.0])
    return QueryRequest(limit=1, query=nearest(sparse, "words"), with_payload=False, with_vector=["words"])


def hybrid(shard, query, limit):
    terms = query["terms"]
    requests = [
        QueryRequest(
            limit=limit,
            query=nearest(query["vector"], "text"),
            filter=kind("exchange"),
            with_payload=WITHOUT_PICTURES,
            with_vector=["words"],
        )
    ]
    if terms:
        sparse = SparseVector(indices=terms, values=[1.0] * len(terms))
        requests.append(
            QueryRequest(
                limit=limit,
                query=nearest(sparse, "words"),
                filter=kind("exchange"),
                with_payload=WITHOUT_PICTURES,
                with_vector=["words", "text"],
            )
        )
        requests += [one(term) for term in terms]
    answers = shard.query_batch(QueryBatchRequest(queries=requests))
    shard.count(CountRequest(filter=kind("exchange"), exact=False))
    return [point.payload for answer in answers[:2] for point in answer]


def sample(shard):
    """The scrolls of a day's sample: its ends, and the newest of each of sixteen slices."""

    def scroll(direction, limit, when=None):
        must = [FieldCondition(key="kind", match=MatchValue(value="frame"))]
        if when:
            must.append(FieldCondition(key="seen_at", range=RangeFloat(gte=when[0], lte=when[1])))
        order = OrderBy(key="seen_at", direction=direction)
        return shard.scroll(
            ScrollRequest(limit=limit, filter=Filter(must=must), order_by=order, with_payload=WITHOUT_PICTURES)
        )[0]

    shard.count(CountRequest(filter=kind("frame"), exact=True))
    first = scroll(Direction.Asc, 1)[0].payload["seen_at"]
    last = scroll(Direction.Desc, 1)[0].payload["seen_at"]
    ids = []
    for slice in range(16):
        edge = lambda at: first + (last + 1 - first) * at // 16
        ids += [record.id for record in scroll(Direction.Desc, 4, (edge(slice), edge(slice + 1) - 1))]
    return shard.retrieve(point_ids=ids, with_payload=False, with_vector=["image"])


def timed(call, queries, rounds):
    for query in queries[:20]:
        call(query)
    took = []
    for _ in range(rounds):
        for query in queries:
            began = time.perf_counter()
            call(query)
            took.append((time.perf_counter() - began) * 1000)
    return took


def main(shard, queries, rounds):
    given = json.load(open(queries))
    queries, limit = given["queries"], given["limit"]
    shard = EdgeShard.load(shard)
    rows = {
        "search: exchange, dense": lambda query: [p.payload for p in shard.query(dense(query, "exchange", limit))],
        "search: exchange, hybrid": lambda query: hybrid(shard, query, limit),
        "search: frame": lambda query: [p.payload for p in shard.query(dense(query, "frame", limit))],
    }
    report = {}
    for name, call in rows.items():
        report[name] = timed(call, queries, rounds)
    report["day sampling"] = timed(lambda _: sample(shard), queries[:40], 1)
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
