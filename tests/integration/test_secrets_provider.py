"""What encrypts a stack's secrets is what its config file says."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.integration.key_service import PROVIDER
from tests.integration.rehearsed import Rehearsed


def test_a_new_stack_is_encrypted_by_the_provider_that_its_config_names(ready: Rehearsed) -> None:
    state = Path(ready.env["PULUMI_BACKEND_URL"].removeprefix("file://"))
    text = (state / ".pulumi" / "stacks" / ready.name / "dev.json").read_text()
    used = json.loads(text)["checkpoint"]["latest"]["secrets_providers"]
    assert (used["type"], used["state"]["url"]) == ("cloud", PROVIDER)
    config = yaml.safe_load((ready.folder / "Pulumi.dev.yaml").read_text())
    assert (config["secretsprovider"], "encryptionsalt" in config) == (PROVIDER, False)
    assert ('"ciphertext"' in text, '"plaintext"' in text) == (True, False)
