"""Every view with the data of a running cluster."""

import re
from urllib.parse import urlsplit

import pytest

from support.browser.tabs import AXE, Browser, Page, address_of, expect, go, tab
from support.cli.up_running import Up

pytestmark = pytest.mark.browser

VIEWS = {
    "cluster": "33",
    "queue": "default/held",
    "decisions": "default/shop-",
    "groups": "No pod groups",
    "time": "Pods per second",
    "compare": "Another configuration",
    "try": "Pods as YAML or JSON",
    "configuration": "NodeResourcesFit",
}


def pending_pod(page: Page) -> str:
    """Return the name of an unschedulable pod in the queue."""
    go(page, "#/queue?filter=indexer")
    row = page.get_by_role("row").filter(has_text="indexer").first
    name: str = row.get_by_role("link").first.inner_text()
    return name


def test_every_view_shows_data(page: Page) -> None:
    """Each view is opened from the list of views."""
    links = page.get_by_role("navigation")
    for view, text in VIEWS.items():
        links.locator(f"a[href^='#/{view}']").click()
        expect(page.get_by_role("main")).to_contain_text(text)
        expect(links.locator("[aria-current=page]")).to_have_attribute("href", re.compile(f"^#/{view}"))


def test_a_node_shows_its_pods_and_rejections(page: Page) -> None:
    """A click on a cell of the map opens the node; the tooltip has its name."""
    go(page, "#/cluster?colour=memory&group=pool")
    canvas = page.locator(".heatmap canvas")
    canvas.hover(position={"x": 20, "y": 40})
    expect(page.locator(".tip")).to_contain_text("batch-")
    canvas.click(position={"x": 20, "y": 40})
    side = page.get_by_role("complementary")
    expect(side).to_contain_text("default/report-")
    expect(side).to_contain_text("had untolerated taint(s)")
    assert "node=batch-" in page.url


def test_nodes_as_a_table(page: Page) -> None:
    """The table has a row for each node, and is sorted by a click on a column."""
    go(page, "#/cluster?show=table")
    table = page.get_by_role("grid", name="Nodes")
    expect(table).to_have_attribute("aria-rowcount", "34")
    table.get_by_role("button", name="cpu").click()
    table.get_by_role("button", name="cpu").click()
    expect(table.get_by_role("row").nth(1)).to_contain_text("batch-")


def test_the_queue_by_state_and_reason(page: Page) -> None:
    """States and reasons are filters; a pod can be followed."""
    go(page, "#/queue?by=pods")
    page.get_by_role("button", name="Gated 1").click()
    expect(page.get_by_role("grid").get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Unschedulable 4").click()
    page.get_by_role("list", name="Reasons").get_by_role("button").first.click()
    expect(page.get_by_role("grid").get_by_role("row")).to_have_count(5)
    page.get_by_role("grid").get_by_role("row").nth(1).click(position={"x": 300, "y": 10})
    followed = page.get_by_role("complementary")
    expect(followed).to_contain_text("Insufficient cpu")
    expect(followed).to_contain_text("NodeResourcesFit")


def test_the_queue_by_owner(page: Page) -> None:
    """Pods of one owner with the same reason are one row, which opens them."""
    go(page, "#/queue")
    owners = page.get_by_role("grid", name="Owners of pods in the queue")
    expect(owners).to_contain_text("default/held")
    owners.get_by_role("row").filter(has_text="default/held").click(position={"x": 300, "y": 10})
    expect(page.get_by_role("grid", name="Pods in the queue").get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="By owner").click()
    expect(owners).to_be_visible()


def test_a_decision_shows_reasons_and_suggestions(page: Page) -> None:
    """It shows the reasons, then the nodes with one of them; and changes that would help."""
    go(page, f"#/pod/{pending_pod(page)}")
    main = page.get_by_role("main")
    expect(main).to_contain_text("0/33 nodes are available")
    outcomes = page.get_by_role("list", name="Outcomes of nodes")
    expect(outcomes.get_by_role("button")).to_have_count(2)
    outcomes.get_by_role("button", name="untolerated taint").click()
    table = page.get_by_role("grid", name="Nodes and their scores")
    expect(table).to_have_attribute("aria-rowcount", "10")
    expect(page.locator(".fits")).to_contain_text("request of cpu lowered from 12")


def test_a_scheduled_pod_shows_the_runner_up(page: Page) -> None:
    """It shows the plugins by which the chosen node leads, and a timeline of queue and binding."""
    go(page, "#/decisions?outcome=scheduled")
    page.get_by_role("grid").get_by_role("row").filter(has_text="shop-").first.get_by_role("link").first.click()
    main = page.get_by_role("main")
    expect(main).to_contain_text("Chosen over the runner-up")
    expect(main).to_contain_text("NodeResourcesBalancedAllocation")
    expect(page.get_by_role("list", name="Timeline")).to_contain_text("Bind (DefaultBinder)")


def test_a_dry_run(page: Page, cluster: Up) -> None:
    """It shows the node, nothing is created, and errors in the manifest are shown."""
    go(page, "#/try")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("would run on")
    page.get_by_label("Pods as YAML or JSON").fill("kind: Pod\nspec: {}")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("line 1: needs apiVersion")
    names = [pod["metadata"]["name"] for pod in cluster.get("/api/v1/namespaces/default/pods")["items"]]
    assert "example" not in names


def test_another_configuration_is_compared(page: Page) -> None:
    """Pods that would move are grouped by reason."""
    go(page, "#/compare")
    box = page.get_by_label("Another configuration")
    expect(box).to_have_value(re.compile("KubeSchedulerConfiguration"))
    box.fill(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {disabled: [{name: TaintToleration}]}}}]"
    )
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("Pods compared")
    expect(page.locator(".group").first).to_be_visible()


def test_past_states_are_shown(page: Page) -> None:
    """The slider selects the first moment; the address has it, other views keep it, and a button returns to now."""
    pods = page.locator(".tile").nth(1)
    expect(pods).to_have_text("Pods69")
    slider = page.get_by_role("slider")
    expect(slider).to_be_enabled()
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".banner.past")).to_contain_text("State at")
    expect(pods).not_to_have_text("Pods69")
    assert "at=" in page.url
    page.get_by_role("navigation").get_by_role("link", name="Queue").click()
    expect(page.get_by_role("button", name="Unschedulable 0")).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_role("button", name="Unschedulable 4")).to_be_visible()


def test_search_finds_pods_nodes_plugins_and_reasons(page: Page) -> None:
    """Only the keyboard is used."""
    expect(page.get_by_role("main")).to_contain_text("Nodes")
    for text, kind, place in [
        ("indexer", "pod", "#/pod/default/indexer"),
        ("batch-3", "node", "#/cluster?node=batch-3"),
        ("TaintTol", "plugin", "#/configuration?plugin=TaintToleration"),
        ("quota", "reason", "#/queue?reason="),
    ]:
        page.keyboard.press("/")
        page.keyboard.type(text)
        expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text(kind)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(re.escape(place)))


def test_an_address_can_be_shared(browser: Browser, page: Page, cluster: Up) -> None:
    """Another user with the token sees the same view."""
    go(page, "#/cluster?colour=taints&group=pool&node=web-3")
    expect(page.get_by_role("complementary")).to_contain_text("web-3")
    token = urlsplit(address_of(cluster)).fragment
    with tab(browser, f"{page.url}&{token}") as other:
        expect(other.get_by_role("complementary")).to_contain_text("web-3")
        expect(other.get_by_label("Colour by")).to_have_value("taints")
        assert "token" not in other.url


def test_light_and_dark(browser: Browser, cluster: Up) -> None:
    """The theme is the preference of the system, unless the user selects one; the selection is kept."""
    with tab(browser, address_of(cluster), color_scheme="dark") as page:
        root = page.locator("html")
        expect(root).to_have_attribute("data-theme", "dark")
        page.get_by_role("button", name="Light colours").click()
        page.reload()
        expect(root).to_have_attribute("data-theme", "light")


def test_views_fit_a_phone_without_horizontal_scrolling(browser: Browser, cluster: Up) -> None:
    """Every view fits a narrow screen."""
    with tab(browser, address_of(cluster), viewport={"width": 375, "height": 740}) as page:
        for view, text in VIEWS.items():
            go(page, f"#/{view}")
            expect(page.get_by_role("main")).to_contain_text(text)
            for part in ("main", "nav"):
                assert page.evaluate(f"document.querySelector('{part}').scrollWidth") <= 375, (view, part)


ENDS = """() => [...document.querySelectorAll(".lines .line")].map((line) => {
    const name = line.querySelector("bdi"), end = document.createRange(), cell = name.closest("[role=gridcell]");
    end.selectNodeContents(name.lastChild);
    return end.getBoundingClientRect().right <= cell.getBoundingClientRect().right && end.toString();
})"""


def test_narrow_tables_show_the_ends_of_names(browser: Browser, cluster: Up) -> None:
    """The pods of a Deployment differ only there."""
    with tab(browser, address_of(cluster), viewport={"width": 390, "height": 844}) as page:
        for place in ("#/queue?filter=indexer", "#/decisions?outcome=unschedulable"):
            go(page, place)
            expect(page.locator(".lines .line").nth(3)).to_contain_text("indexer")
            ends = page.evaluate(ENDS)[:4]
            assert len(set(ends)) == 4
            assert all(ends)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is missing; make browser gets it")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(browser: Browser, cluster: Up, scheme: str) -> None:
    """Roles, labels and contrast of every view, in both themes."""
    with tab(browser, address_of(cluster), color_scheme=scheme, bypass_csp=True) as page:
        pod = pending_pod(page)
        page.add_script_tag(path=AXE)
        places = {f"#/{view}": text for view, text in VIEWS.items()}
        places |= {f"#/pod/{pod}": "Would fit if", "#/cluster?node=web-3": "Recent rejections"}
        found = []
        for place, text in places.items():
            go(page, place)
            expect(page.get_by_role("main")).to_contain_text(text)
            result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
            found += [
                (place, broken["id"], [node["html"][:200] for node in broken["nodes"][:3]])
                for broken in result["violations"]
                if broken["impact"] in ("serious", "critical")
            ]
    assert found == []


def test_the_queue_names_causes_and_is_limited_to_an_owner(page: Page) -> None:
    """The groups have the cause and the change of the overview; one owner can be chosen."""
    go(page, "#/queue")
    owners = page.get_by_role("grid", name="Owners of pods in the queue")
    expect(owners).to_contain_text("scheduling gate example.com/quota removed")
    page.get_by_label("Owner", exact=True).select_option(label="Pod default/held (1)")
    expect(page.get_by_role("grid", name="Pods in the queue").get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("main")).to_contain_text("→ scheduling gate example.com/quota removed (helps 1 of 1)")
    page.get_by_role("button", name="Show all").click()
    expect(owners).to_be_visible()
