"""What Prometheus reads."""

from types import SimpleNamespace
from typing import cast

from prometheus_client.parser import text_string_to_metric_families

from manyheads.answer.request import AnswerRequest
from manyheads.serve.service.service_metrics import ServiceMetrics
from manyheads.serve.service.worker_pool import WorkerPool


def values(metrics: ServiceMetrics) -> dict[str, float]:
    """The values by name and labels, without the times at which counters were made."""
    found = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        assert family.documentation
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                found[" ".join([sample.name, *sample.labels.values()])] = sample.value
    return found


def test_requests_texts_and_batches_are_counted() -> None:
    metrics = ServiceMetrics()
    metrics.request_done("/v1/predict", 200, 0.02)
    metrics.request_done("/v1/predict", 200, 3.0)
    metrics.request_done("/v1/predict", 429, 0.001)
    metrics.request_cancelled()
    metrics.texts_received(AnswerRequest("m", ("ab", "中文字")))
    metrics.batch_done(3, 0.3)
    found = values(metrics)
    assert found["manyheads_requests_total /v1/predict 200"] == 2
    assert found["manyheads_requests_total /v1/predict 429"] == 1
    assert found["manyheads_request_seconds_count /v1/predict"] == 3
    assert found["manyheads_request_seconds_sum /v1/predict"] == 3.021
    assert found["manyheads_cancelled_total"] == 1
    assert (found["manyheads_texts_total m"], found["manyheads_characters_total m"]) == (2, 5)
    assert (found["manyheads_batch_texts_bucket 2.0"], found["manyheads_batch_texts_bucket 4.0"]) == (0, 1)
    assert found["manyheads_batch_seconds_sum"] == 0.3


def test_the_state_of_the_workers_is_read_when_it_is_asked_for() -> None:
    metrics, pauses = ServiceMetrics(), iter([0.25, 0.0])
    pool = SimpleNamespace(n_ready=1, n_workers=2, n_restarts=3, n_streams=4, queue=SimpleNamespace(n_texts=5))
    metrics.watch(cast(WorkerPool, pool))
    metrics.watch_pauses(lambda: next(pauses))
    before = values(metrics)
    assert (before["manyheads_workers_ready"], before["manyheads_longest_pause_seconds"]) == (1, 0.25)
    pool.n_ready = 2
    found = values(metrics)
    assert found["manyheads_workers_ready"] == found["manyheads_workers"] == 2
    assert found["manyheads_worker_restarts"] == 3
    assert found["manyheads_streams_open"] == 4
    assert found["manyheads_queue_texts_waiting"] == 5
    assert found["manyheads_longest_pause_seconds"] == 0
