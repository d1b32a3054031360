"""What an upgrade of the chart changes in a cluster is what CHANGELOG.md tells.

`released/rendering.yaml` is what the chart of the last release renders for ci/default.yaml. An object that is now
another one has to be named under [Unreleased], as `Deployment/api`. A release makes the file anew, and so does any change
before the first release, since there is no one yet who upgrades: KEEP_RENDERING=1 pytest tests/chart/test_last_release.py
"""

import os
import re
from pathlib import Path

from tests.chart.programs import CHART, ROOT
from tests.chart.rendering import objects_of, render_text

KEPT = Path(__file__).parent / "released" / "rendering.yaml"
_VERSION = re.compile(r"^## \[(\d[^\]]*)\]", re.MULTILINE)


def objects_by_name(text: str) -> dict[str, object]:
    """Return the content of each object, by kind and name; the chart's version and the migration's hash do not count."""
    text = re.sub(r'(helm.sh/chart: sweephand-|app.kubernetes.io/version: "|image: "sweephand:)[0-9.]+', r"\1", text)
    made = objects_of(re.sub(r"-migrate-[0-9a-f]{10}", "-migrate", text))
    return {f"{one.kind}/{one.name.removeprefix('shop-sweephand').lstrip('-') or 'all'}": one.node.value for one in made}


def untold(before: str, after: str, *, changelog: str) -> list[str]:
    """Return the objects that differ and are not named where the changelog tells what comes next."""
    unreleased = changelog.split("\n## [Unreleased]")[1].split("\n## [", maxsplit=1)[0]
    old, new = objects_by_name(before), objects_by_name(after)
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return [name for name in changed if f"`{name}`" not in unreleased]


def test_an_upgrade_changes_only_what_the_changelog_tells() -> None:
    now = render_text(CHART / "ci" / "default.yaml")
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if os.environ.get("KEEP_RENDERING"):
        KEPT.write_text(now)

    if _VERSION.search(changelog):
        assert untold(KEPT.read_text(), now, changelog=changelog) == []
    else:
        assert objects_by_name(now) == objects_by_name(KEPT.read_text()), "no release yet: KEEP_RENDERING=1 keeps this one"


def test_a_change_that_is_not_told_is_found() -> None:
    before = (
        "kind: Service\nmetadata: {name: shop-sweephand-api}\nspec: {port: 80}\n---\nkind: Job\nmetadata: {name: shop-sweephand}"
    )
    after = before.replace("80", "81")
    head = "# Changelog\n\n## [Unreleased]\n\n"

    assert untold(before, after, changelog=head + "\n## [0.1.0]\n\n- `Service/api`\n") == ["Service/api"]
    assert untold(before, after, changelog=head + "- `Service/api` listens on 81.\n\n## [0.1.0]\n") == []
    assert untold(before, before, changelog=head) == []
    assert untold(before, before.split("---", maxsplit=1)[0], changelog=head) == ["Job/all"]
