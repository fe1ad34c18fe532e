# SPDX-License-Identifier: GPL-2.0-only
"""A headless Chromium for tests, without a network but loopback, with a profile of its own."""

import os
import shutil
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None


def missing():
    """Return the reason why there is no browser, or None."""
    if not webdriver:
        return "python3-selenium is not installed"
    if not shutil.which("chromium"):
        return "chromium is not installed"
    if not shutil.which("chromedriver"):
        return "chromium-driver is not installed"
    return None


class Browser:
    """A browser until close(); width and height are those of the page."""

    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.mkdtemp()
        self.driver = webdriver.Chrome(options=self.options(),
                                       service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(60)
        self.size(width, height, dark)

    def options(self):
        options = Options()
        options.binary_location = shutil.which("chromium")
        options.set_capability("acceptInsecureCerts", True)    # of services of tests
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                         "--disable-background-networking", "--no-first-run", "--lang=en-GB",
                         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                         f"--user-data-dir={self.profile}"):
            options.add_argument(argument)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")
        return options

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def size(self, width, height, dark=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=width < 600)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def press(self, keys):
        """Press keys one by one, with Shift held if that is the first.

        They go to whatever has the focus when each is pressed: no element is named, since the page
        may replace one between two commands.
        """
        shift = keys.startswith(Keys.SHIFT)
        chain = ActionChains(self.driver)
        if shift:
            chain.key_down(Keys.SHIFT)
        chain.send_keys(keys[shift:])
        if shift:
            chain.key_up(Keys.SHIFT)
        chain.perform()

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)
