"""The alarms of a cluster that are on: what ends it at its deadline has failed."""

from __future__ import annotations

from clusterctl.cloud.alarms import alarms_on
from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.clients import AwsClients
from clusterctl_infra.names import guard_name

from tests.unit.cli.cloud.moto_account import an_account

ID = "0123456789ab"


def put_alarm(clients: Clients, name: str, *, state: str, **described: str) -> None:
    clients.cloudwatch.put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/States",
        MetricName="ExecutionsFailed",
        ComparisonOperator="GreaterThanThreshold",
        EvaluationPeriods=1,
        Threshold=0.0,
        **described,
    )
    clients.cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="a test")


def test_alarms_of_the_cluster_that_are_on_are_named_with_what_they_mean() -> None:
    with an_account():
        clients = AwsClients(region="us-west-2", endpoint_url=None)
        own = guard_name(ID)
        put_alarm(clients, f"{own}-schedule", state="ALARM", AlarmDescription="clusterctl: the schedule has failed")
        put_alarm(clients, f"{own}-failed", state="ALARM")
        put_alarm(clients, f"{own}-quiet", state="OK")
        put_alarm(clients, f"{guard_name('ba9876543210')}-failed", state="ALARM")
        found = alarms_on(clients, ID)
    assert [(alarm.name, alarm.means) for alarm in found] == [
        (f"{own}-failed", "ExecutionsFailed"),
        (f"{own}-schedule", "the schedule has failed"),
    ]
    assert all(alarm.since.tzinfo is not None for alarm in found)
