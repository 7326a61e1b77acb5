"""What a machine on AWS's spare capacity costs at most: the maximum price in the request to AWS."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal

TOO_LOW_USD_PER_HOUR = 0.001
"""A maximum price has to be above it (EC2 API, SpotMarketOptions, MaxPrice; 2026-11-22)."""
_FINEST = Decimal("0.000001")
"""AWS writes spot prices with six decimals (EC2 API, DescribeSpotPriceHistory)."""


@dataclass(frozen=True, kw_only=True)
class SpotPrice:
    """US dollars per hour of one machine; None is unknown and never 0."""

    max_usd_per_hour: float | None
    """AWS bills no more: it takes the machine back when the spot price rises above this."""
    is_capped: bool
    """Whether the maximum is the person's cap; if not, it is the on-demand list price, which is AWS's own default."""
    list_usd_per_hour: float | None
    """The lowest spot price of the region's zones, on the day of the price list."""

    @property
    def max_price(self) -> str | None:
        """The maximum as AWS takes it; None: it is left to AWS."""
        return None if self.max_usd_per_hour is None else _text(_rounded(self.max_usd_per_hour))


def spot_price(
    *, cap_usd_per_hour: float | None, on_demand_usd_per_hour: float | None, list_usd_per_hour: float | None
) -> SpotPrice:
    """The cap where there is one, but never more than on demand; with neither the maximum is unknown."""
    known = [price for price in (cap_usd_per_hour, on_demand_usd_per_hour) if price is not None]
    highest = min(known, default=None)
    return SpotPrice(
        max_usd_per_hour=None if highest is None else float(_rounded(highest)),
        is_capped=cap_usd_per_hour is not None and highest == cap_usd_per_hour,
        list_usd_per_hour=list_usd_per_hour,
    )


def _rounded(usd_per_hour: float) -> Decimal:
    """The price to six decimals, rounded down so that it never exceeds a cap."""
    return Decimal(str(usd_per_hour)).quantize(_FINEST, rounding=ROUND_DOWN)


def _text(price: Decimal) -> str:
    """`55.04`: never with an exponent."""
    return f"{price:f}".rstrip("0").rstrip(".")
