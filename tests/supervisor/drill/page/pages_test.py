"""The page of a drill as others read it: a reader of XML, and one of HTML, which takes what it gets.

Arguments: the test program that writes the pages.
"""

import html.parser
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = sys.argv.pop()
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
LOADS = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "input", "a", "image", "use", "foreignObject", "video", "audio"}
ADDRESSES = {"src", "href", "xlink:href", "action", "style", "srcset", "data", "poster", "background"}


class Page(html.parser.HTMLParser):
    """What an HTML parser finds: each element with its attributes, and whether ends fit."""

    def __init__(self):
        super().__init__()
        self.found, self.open, self.wrong = [], [], []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


class PagesTest(unittest.TestCase):
    def test_others_read_the_same_harmless_page(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "--gtest_filter=DrillPage.IsWrittenWhereItIsAskedFor"], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "MONARCH_DRILL_PAGES": folder})
            names = sorted(os.listdir(folder))
            self.assertGreater(len(names), 10)
            for name in names:
                with self.subTest(name), open(os.path.join(folder, name), "rb") as file:
                    self.look_at(file.read())

    def look_at(self, raw):
        root = xml.etree.ElementTree.fromstring(raw)
        self.assertEqual(root.tag, XHTML + "html")
        as_xml = [(element.tag.removeprefix(XHTML).removeprefix(SVG), element.attrib) for element in root.iter()]
        page = Page()
        page.feed(raw.decode())
        page.close()
        self.assertEqual((page.wrong, page.open), ([], []))
        self.assertEqual([tag for tag, _ in page.found], [tag.lower() for tag, _ in as_xml])
        for tag, attributes in page.found:
            self.assertNotIn(tag, LOADS)
            for name in attributes:
                self.assertFalse(name.startswith("on") or name in ADDRESSES, f"{tag} {name}")
        policies = [attributes.get("content") for tag, attributes in page.found if attributes.get("http-equiv") == "Content-Security-Policy"]
        self.assertEqual(policies, ["default-src 'none'; style-src 'unsafe-inline'"])
        for element in root.iter(SVG + "svg"):
            self.assertTrue(element.get("aria-hidden") or element.get("role") == "img" and element.get("aria-label"), element.attrib)


if __name__ == "__main__":
    unittest.main()
