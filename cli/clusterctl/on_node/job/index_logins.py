"""Logins in the addresses of package indexes, taken out of a file of requirements: pip shows addresses to everybody.

To build a package pip starts itself with the indexes as arguments (`pip/_internal/build_env.py`, pip 23.2 and 25.3,
read 2026-11-26), and arguments are for all users of a node to see. In a file that NETRC names they are not
(https://pip.pypa.io/en/stable/topics/authentication/, read 2026-11-26).
"""

from __future__ import annotations

import re
from typing import Dict, List, Tuple
from urllib.parse import unquote

ADDRESS = re.compile(r"(?<![+\w])(https?://)([^\s/:@]+):([^\s/@]+)@([A-Za-z0-9._-]+)")
"""Addresses with a login, but none for git, which reads no NETRC; nor with a user only: netrc has no empty password."""
PLAIN = re.compile(r"(?!.*\$\{)[!$-&(-\[\]-~]+")
"""Printable, without blanks, quotes, backslashes and #, which Python 3.9 and 3.11 read differently in a netrc file; and
without ${NAME}, which pip replaces by a variable in requirements, but nothing does in a netrc file."""


def without_logins(text: str) -> Tuple[str, str]:
    """The text, its addresses without logins, and a netrc file that has the logins.

    A netrc file has one login for each host: from a host with several logins nothing is taken out.
    """
    logins: Dict[str, List[Tuple[str, str]]] = {}
    for found in ADDRESS.finditer(text):
        login = (unquote(found[2]), unquote(found[3]))
        if login not in logins.setdefault(found[4], []):
            logins[found[4]].append(login)
    taken = {
        host: pairs[0] for host, pairs in logins.items() if len(pairs) == 1 and all(map(PLAIN.fullmatch, pairs[0]))
    }
    bare = ADDRESS.sub(lambda found: found[1] + found[4] if found[4] in taken else found[0], text)
    lines = ["machine %s login %s password %s" % (host, *login) for host, login in sorted(taken.items())]
    return bare, "".join(line + "\n" for line in lines)
