"""The key pair of a rehearsed region, and where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusterctl_infra.region_keys import own_keys, read_keys


def test_a_key_pair_is_made_once_for_its_owner_alone_and_is_no_accounts(tmp_path: Path) -> None:
    file = tmp_path / "region.keys"
    made = own_keys(file)
    assert own_keys(file) == read_keys(file) == made
    assert file.stat().st_mode & 0o777 == 0o600
    assert (made.access_key_id[:9], len(made.access_key_id)) == ("REHEARSAL", 20)
    assert made.secret_access_key not in repr(made)
    assert own_keys(tmp_path / "another") != made


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"x"', '{"access_key_id": "a"}'])
def test_a_file_that_holds_none_is_said_and_replaced(text: str, tmp_path: Path) -> None:
    file = tmp_path / "region.keys"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"region\.keys holds no key pair$"):
        read_keys(file)
    assert own_keys(file) == read_keys(file)
