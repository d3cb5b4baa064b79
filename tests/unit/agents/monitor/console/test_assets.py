from agents.monitor.console import assets


def test_the_page_does_not_wait_for_the_chart_library_to_be_compressed():
    assets.assets.cache_clear()
    assets.charts.cache_clear()
    page = assets.assets()[assets.PAGE]
    assert b"{placeholders}" not in page.body
    assert assets.charts.cache_info().currsize == 0
    assert assets.charts().body.startswith(b"/**")
