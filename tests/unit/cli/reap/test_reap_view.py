"""What a person and a program read of a look at an account, and what is refused before anything is ended."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from clusterctl.cloud.delete_orphans import Deletion
from clusterctl.cloud.resource import CloudResource, Meter
from clusterctl.reap.ending import Ended, refuse_left
from clusterctl.reap.remains import Remains
from clusterctl.reap.request import ReapRequest, looks_everywhere, refuse_unknown
from clusterctl.reap.search import Search, regions_asked
from clusterctl.reap.verdict import Asked, Verdict, judge
from clusterctl.reap.view import ReapView, again, reap_json, reap_text
from clusterctl_infra.catalog.reader import load_catalog
from clusterctl_infra.errors import CloudError, NothingMatched, StillBills, UsageError

from tests.unit.cli.cost.paid_cluster import an_inventory
from tests.unit.cli.reap.reap_cases import GRACE, ID, LATE, NOW, OTHER, mine, thing, written

DATA = thing("EFS file system", "fs-1", meter=Meter(unit="EFS GiB", amount=100))
FULL = Remains(
    cluster_id=ID,
    region="us-west-2",
    things=(
        thing(
            "instance",
            "i-1",
            deadline=written(NOW - LATE),
            meter=Meter(unit="machine", name="p5.48xlarge"),
            created_at=NOW - timedelta(hours=6),
        ),
        DATA,
        thing("NAT gateway", "nat-1", meter=Meter(unit="NAT gateway")),
        thing("VPC", "vpc-1"),
    ),
)
STRANGE = Remains(
    cluster_id=OTHER, region="us-west-2", things=(thing("subnet", "s-1", cluster=OTHER, deadline=written(NOW - LATE)),)
)


def seen(*, acts: bool = False, **asked: object) -> ReapView:
    wish = Asked(grace=GRACE, **asked)  # type: ignore[arg-type]
    known = {ID: mine()}
    return ReapView(
        search=Search(regions=("us-west-2",), all_regions=False, remains=(FULL, STRANGE)),
        verdicts=tuple(
            judge(remains, wish, known.get(remains.cluster_id), now=NOW, all_regions=False)
            for remains in (FULL, STRANGE)
        ),
        asked=wish,
        acts=acts,
        rehearsal=True,
        catalog=load_catalog(),
        market={},
        now=NOW,
    )


def test_the_screen_says_what_would_go_what_stays_and_what_to_type() -> None:
    lines = [" ".join(line.split()) for line in reap_text(seen()).splitlines()]
    assert lines[0] == "us-west-2 · 2 clusters · 1 would end (rehearsed: simulated money)"
    assert lines[2] == f"{ID} train ada yours us-west-2 6 h 10:00 UTC $1323.03 4 ends: 2 h past its deadline"
    assert lines[3].startswith(f"{OTHER} train ada unknown here us-west-2 unknown 10:00 UTC $0.00 1 stays: 2 h past")
    assert f"train {ID}: instance i-1, $1320.96 a day" in lines
    assert f"train {ID}: EFS file system fs-1, $0.99 a day; stays, holds data: --data fs-1 ends it" in lines
    assert (f"train {OTHER} would end by: clusterctl reap --cluster {OTHER} --region us-west-2 --rehearse") in lines
    assert lines[-1] == "nothing was ended; next: clusterctl reap --region us-west-2 --rehearse --yes"


@pytest.mark.parametrize(
    ("market", "price", "note"),
    [
        ({("p5.48xlarge", "us-west-2b"): 12.5}, "$300.00", "spot machines are at AWS's present spot price"),
        ({}, "at most $1320.96", "at most: AWS gives no spot price, so the machine is at its price on demand"),
    ],
)
def test_a_spot_machine_is_shown_at_its_spot_price_or_as_a_bound(
    market: dict[tuple[str, str], float], price: str, note: str
) -> None:
    meter = Meter(unit="spot machine", name="p5.48xlarge", zone="us-west-2b")
    machine = replace(FULL.things[0], meter=meter)
    verdict = judge(replace(FULL, things=(machine,)), Asked(grace=GRACE), mine(), now=NOW, all_regions=False)
    view = replace(seen(), verdicts=(verdict,), market=market)
    text = " ".join(reap_text(view).split())
    assert f"10:00 UTC {price} 1 ends" in text
    assert f"train {ID}: instance i-1, {price} a day" in text
    assert note in text
    row = reap_json(view, [])["clusters"][0]  # type: ignore[index]  # parsed JSON has no shape
    assert (row["is_at_most"], row["things"][0]["is_at_most"]) == (not market, not market)


def test_a_cluster_that_is_down_on_purpose_has_no_deadline_which_is_not_an_unknown_one() -> None:
    kept = replace(FULL, things=(thing("EFS file system", "fs-1", deadline="none"),))
    view = replace(seen(), verdicts=(judge(kept, Asked(grace=GRACE), mine(), now=NOW, all_regions=False),))
    assert "us-west-2 unknown none $0.00 1 stays: down on purpose" in " ".join(reap_text(view).split())


def test_an_empty_account_is_one_line() -> None:
    nothing = replace(seen(), verdicts=(), rehearsal=False)
    assert reap_text(nothing) == "us-west-2 · nothing of any cluster"


def test_the_command_to_type_again_keeps_what_was_chosen() -> None:
    view = seen(clusters=frozenset({ID}), data=frozenset({"fs-1"}), anyones=True)
    everywhere = replace(view, search=replace(view.search, all_regions=True), rehearsal=False)
    assert again(everywhere) == f"clusterctl reap --cluster {ID} --data fs-1 --anyones --all-regions"


def test_json_says_of_each_thing_what_becomes_of_it() -> None:
    view = seen(acts=True)
    deletion = Deletion(
        ended=(FULL.things[0],),
        left=(DATA,),
        not_ended=(FULL.things[2],),
        refusals={("NAT gateway", "nat-1"): "DependencyViolation"},
    )
    row = json.loads(json.dumps(reap_json(view, [Ended(verdict=view.verdicts[0], deletion=deletion)])))["clusters"][0]
    by_id = {thing["id"]: thing for thing in row["things"]}
    assert (row["whose"], row["usd_per_day"], row["ends"]) == ("mine", pytest.approx(1323.03, abs=0.01), True)
    assert [(thing["goes"], thing["gone"]) for thing in by_id.values()] == [
        (True, True),
        (False, False),
        (True, False),
        (False, False),
    ]
    assert by_id["nat-1"]["refusal"] == "DependencyViolation"
    assert by_id["fs-1"]["stays_because"] == "holds data: --data fs-1 ends it"


def test_what_could_not_be_ended_is_listed_with_awss_reason_and_its_bill() -> None:
    verdict = seen().verdicts[0]
    deletion = Deletion(
        ended=(), left=(), not_ended=(FULL.things[2],), refusals={("NAT gateway", "nat-1"): "Forbidden"}
    )
    lost = Ended(verdict=verdict, deletion=Deletion(ended=(), left=()), trouble="AWS did not answer")
    with pytest.raises(StillBills) as refused:
        refuse_left([Ended(verdict=verdict, deletion=deletion), lost], again="clusterctl reap")
    assert refused.value.exit_code == 4
    assert refused.value.problems == (
        f"  train {ID}: NAT gateway nat-1 (Forbidden): bills by the hour, and for each GB that it carries",
        f"  train {ID}: AWS did not answer",
    )
    refuse_left([Ended(verdict=verdict, deletion=Deletion(ended=(), left=(DATA,)))], again="")


GAP = {"us-west-2": {"FSx file system": CloudError("AccessDeniedException: no", code="AccessDeniedException")}}


def with_gap(view: ReapView) -> ReapView:
    search = replace(view.search, gaps=GAP)
    verdicts = (replace(verdict, not_listed=search.not_listed_in(verdict.remains.region)) for verdict in view.verdicts)
    return replace(view, search=search, verdicts=tuple(verdicts))


def test_what_could_not_be_asked_for_is_on_the_screen_and_in_no_sum() -> None:
    lines = [" ".join(line.split()) for line in reap_text(with_gap(seen())).splitlines()]
    assert lines[0] == "us-west-2 · 2 clusters, as far as AWS says · 1 would end (rehearsed: simulated money)"
    assert "$1323.03+ 4 ends: 2 h past its deadline" in lines[2]
    assert (
        "AWS did not say whether it has: FSx file system (AccessDeniedException) in us-west-2: "
        "what is there of it is in no row and no sum"
    ) in lines
    nothing = replace(with_gap(seen()), verdicts=(), rehearsal=False)
    assert reap_text(nothing).startswith(
        "us-west-2 · nothing of any cluster, as far as AWS says\n  AWS did not say whether it has: FSx"
    )


def test_json_says_that_the_list_is_not_whole() -> None:
    whole, partial = reap_json(seen(), []), json.loads(json.dumps(reap_json(with_gap(seen()), [])))
    assert (whole["is_whole"], whole["not_asked"]) == (True, [])
    assert partial["is_whole"] is False
    assert [(kind["region"], kind["kind"], kind["code"]) for kind in partial["not_asked"]] == [
        ("us-west-2", "FSx file system", "AccessDeniedException")
    ]
    assert partial["clusters"][0]["not_asked"] == ["FSx file system"]


def test_a_cluster_of_which_aws_did_not_tell_all_is_not_called_ended() -> None:
    deletion = Deletion(ended=FULL.things, left=(), not_listed=GAP["us-west-2"])
    done = Ended(verdict=seen().verdicts[0], deletion=deletion)
    assert not done.is_done
    with pytest.raises(
        StillBills, match="not known whether everything is gone: AWS did not list every kind"
    ) as refused:
        refuse_left([done], again="clusterctl reap")
    assert refused.value.problems == (
        f"  train {ID}: AWS did not say whether it has: FSx file system (AccessDeniedException)",
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(grace=GRACE, clusters=frozenset({"0123456789aa"})), "did you mean 0123456789ab"),
        (Asked(grace=GRACE, clusters=frozenset({"train"})), f"the name of {ID}?"),
        (Asked(grace=GRACE, data=frozenset({"fs-2"})), "no data of a cluster that would be ended"),
        (Asked(grace=GRACE, data=frozenset({"vpc-1"})), "no data of a cluster that would be ended"),
    ],
)
def test_an_id_that_means_nothing_is_refused(asked: Asked, message: str) -> None:
    view = seen()
    with pytest.raises(NothingMatched, match=message.replace("?", r"\?")) as refused:
        refuse_unknown(replace(view, asked=asked))
    assert refused.value.hint == "clusterctl reap --region us-west-2 --rehearse"
    refuse_unknown(replace(view, asked=Asked(grace=GRACE, clusters=frozenset({OTHER}), data=frozenset({"fs-1"}))))


def test_an_id_that_was_not_found_may_be_of_what_aws_did_not_tell() -> None:
    view = seen()
    partly = replace(view, search=replace(view.search, unseen={"us-west-2": CloudError("no", code="RequestExpired")}))
    asked = Asked(grace=GRACE, clusters=frozenset({"nobody"}))
    with pytest.raises(NothingMatched, match=r"nothing in us-west-2, as far as AWS says, carries this id"):
        refuse_unknown(replace(partly, asked=asked))


@pytest.mark.parametrize(
    ("rehearse", "region", "is_known", "everywhere"),
    [
        (True, None, False, True),
        (True, None, True, False),
        (True, "us-west-2", False, False),
        (False, None, False, False),
    ],
)
def test_a_rehearsal_that_knows_no_cluster_is_looked_through_everywhere(
    rehearse: bool, region: str | None, is_known: bool, everywhere: bool
) -> None:
    request = ReapRequest(
        asked=Asked(grace=GRACE), region=region, all_regions=False, rehearse=rehearse, acts=False, as_json=False
    )
    assert looks_everywhere(request, [an_inventory()] if is_known else []) is everywhere


def test_where_to_look_is_what_was_said_or_what_is_known() -> None:
    assert regions_asked("eu-west-1", ["us-west-2"], "us-east-1", all_regions=False) == ["eu-west-1"]
    assert regions_asked(None, ["us-west-2", "us-west-2"], "us-east-1", all_regions=False) == ["us-east-1", "us-west-2"]
    assert regions_asked(None, [], None, all_regions=True) == []
    with pytest.raises(UsageError, match="which region"):
        regions_asked(None, [], None, all_regions=False)
    with pytest.raises(UsageError, match="give only one"):
        regions_asked("eu-west-1", [], None, all_regions=True)


def test_a_thing_without_the_tag_is_nobodys() -> None:
    assert CloudResource(kind="instance", id="i-1").cluster_id is None


def test_a_cluster_that_stays_spares_everything() -> None:
    stays: Verdict = seen().verdicts[1]
    assert stays.going == ()
