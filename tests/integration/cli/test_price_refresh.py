"""`prices refresh` against a stand-in for the AWS Price List and EC2: the real program, real boto3, real HTTP."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any  # JSON of requests
from urllib.parse import parse_qs

import pytest

from tests.integration.rehearsed import CLUSTERCTL

PRICES = {"p5.48xlarge": "50.0000000000", "p5.4xlarge": None}
SPOT = {"us-west-2a": "21.5", "us-west-2b": "19.25"}


class PriceServer(ThreadingHTTPServer):
    """Answers GetProducts in two pages, and DescribeSpotPriceHistory."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: PriceServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("X-Amz-Target") == "AWSPriceListService.GetProducts":
            self._send(json.dumps(self._products(json.loads(body))), "application/x-amz-json-1.1")
        else:
            self._send(self._spot({key: value[0] for key, value in parse_qs(body.decode()).items()}), "text/xml")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""

    def _products(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.server.asked.append(asked)
        wanted = {row["Field"]: row["Value"] for row in asked["Filters"]}
        price = PRICES.get(wanted["instanceType"])
        if price is None:
            return {"FormatVersion": "aws_v1", "PriceList": []}
        if "NextToken" not in asked:
            return {"FormatVersion": "aws_v1", "PriceList": [], "NextToken": "more"}
        dimension = {"unit": "Hrs", "pricePerUnit": {"USD": price}}
        terms = {"OnDemand": {"S": {"priceDimensions": {"D": dimension}}}}
        return {"FormatVersion": "aws_v1", "PriceList": [json.dumps({"terms": terms})]}

    def _spot(self, asked: dict[str, str]) -> str:
        assert asked["Action"] == "DescribeSpotPriceHistory"
        assert asked["ProductDescription.1"] == "Linux/UNIX"
        rows = "".join(
            f"<item><instanceType>p5.48xlarge</instanceType><productDescription>Linux/UNIX</productDescription>"
            f"<spotPrice>{price}</spotPrice><timestamp>2026-11-21T10:00:00.000Z</timestamp>"
            f"<availabilityZone>{zone}</availabilityZone></item>"
            for zone, price in SPOT.items()
        )
        return (
            '<DescribeSpotPriceHistoryResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
            f"<spotPriceHistorySet>{rows}</spotPriceHistorySet><nextToken/></DescribeSpotPriceHistoryResponse>"
        )

    def _send(self, text: str, content_type: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def price_server() -> Iterator[PriceServer]:
    with PriceServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def clusterctl(*arguments: str, home: Path, endpoint: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")} | {
        "CLUSTERCTL_HOME": str(home),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    return subprocess.run([CLUSTERCTL, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)


def test_what_aws_says_today_is_kept_and_what_it_does_not_say_stays(price_server: PriceServer, tmp_path: Path) -> None:
    done = clusterctl("prices", "refresh", "p5", "--region", "us-west-2", home=tmp_path, endpoint=price_server.url)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 prices of us-west-2 are today's" in done.stderr
    assert "AWS names none for p5.4xlarge" in done.stderr
    fields = {row["Field"]: row["Value"] for row in price_server.asked[0]["Filters"]}
    assert (fields["regionCode"], fields["operatingSystem"], fields["tenancy"]) == ("us-west-2", "Linux", "Shared")
    shown = clusterctl("prices", "p5", "--region", "us-west-2", "--json", home=tmp_path, endpoint="http://127.0.0.1:9")
    rows = {row["instance_type"]: row for row in json.loads(shown.stdout)}
    today = rows["p5.48xlarge"]
    assert (today["on_demand_usd_per_hour"], today["spot_usd_per_hour"], today["age_days"]) == (50.0, 19.25, 0)
    older = rows["p5.4xlarge"]
    assert (older["on_demand_usd_per_hour"], older["dated"]) == (6.88, "2026-01")
    assert_plan_uses(tmp_path, price=50.0)


def assert_plan_uses(home: Path, *, price: float) -> None:
    stack = home / "train"
    stack.mkdir()
    (stack / "Pulumi.yaml").write_text("name: train\nruntime: python\n")
    (stack / "cluster.yaml").write_text(
        "name: train\nregion: us-west-2\nnodes: 2\ninstance_type: p5.48xlarge\naccess: {mode: private}\n"
    )
    done = clusterctl("plan", str(stack), "--json", home=home, endpoint="http://127.0.0.1:9")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["price"]["node_usd_per_hour"] == price


def test_an_aws_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    done = clusterctl("prices", "refresh", "p5", "--region", "us-west-2", home=tmp_path, endpoint="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "asking for spot prices in us-west-2" in done.stderr
    assert not (tmp_path / "prices.json").exists()
