# SPDX-License-Identifier: GPL-2.0-only
"""Commands that pages and manual pages name, the grammar of gpuctl, texts of the sources, and links
of HTML."""

import html.parser
import re
import shlex


# ---- commands

def literals(text):
    """Commands of a page: (line, command, whole); names in running text may lack their words."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        if re.match(r"^\s*\.\. code-block::|^(?!\s*\.\.).*::$", line):
            indent = len(line) - len(line.lstrip())
            i += 1
            begin = i
            block = []
            while i < len(lines) and (not lines[i].strip() or
                                      len(lines[i]) - len(lines[i].lstrip()) > indent):
                block.append(lines[i])
                i += 1
            joined = re.sub(r"\\\n\s*", " ", "\n".join(block))
            for number, command in enumerate(joined.split("\n")):
                yield begin + number + 1, command, True
            continue
        i += 1
    for match in re.finditer(r"``([^`]+)``", text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[1].split()), False


def troff_examples(text):
    """Commands between .nf and .fi of a manual page."""
    for block in re.finditer(r"^\.(?:nf|EX)\n(.*?)^\.(?:fi|EE)$", text, flags=re.M | re.S):
        begin = text.count("\n", 0, block.start()) + 2
        for number, command in enumerate(block[1].split("\n")):
            yield begin + number, command.replace("\\-", "-").replace("\\(dq", '"'), True


# Where a call ends in a line of the shell, or in a text that quotes it.
CALL_END = re.compile(r"(?<!\S)#| \||;|&&|(?<!\S)>|\)(?:\s|$)|'(?:,|:|\s|$)")


def calls(command, program, whole=True):
    """Words of each call of a program in a line of the shell, or in a text that quotes it."""
    before = r"^|[\s(/']" if whole else r"^|[(']"
    for match in re.finditer(rf"(?:{before}){re.escape(program)}(?= |$)", command):
        rest = CALL_END.split(command[match.end():])[0]
        try:
            yield shlex.split(rest.rstrip(").,"))
        except ValueError:
            yield rest.split()


class Grammar:
    """The command table of gpuctl, as 'gpuctl help --table' prints it."""

    def __init__(self, table):
        self.commands, self.options = {}, {}
        for line in table.splitlines():
            kind, what, more = line.split("\t")[:3]
            if kind == "option":
                short, long = what.split(", ")
                self.options[short] = self.options[long] = bool(more)
            else:
                words = what.split()[1:]
                verb = words[1] if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) else None
                # Options may stand anywhere, and are looked at apart.
                rest = re.sub(r"--[a-z-]+ [A-Z]+", "", " ".join(words[2 if verb else 1:]))
                self.commands.setdefault(words[0], {})[verb] = self.regex(rest)

    @staticmethod
    def regex(synopsis):
        """A regular expression for the words behind the verb, each with a space before it."""
        text = re.sub(r"([A-Z]+)\[,[A-Z]+\]\.\.\.", r"\1", synopsis)
        out = []
        for token in re.findall(r"\.\.\.| \| |[\[\]{}]|[^\s\[\]{}]+?(?=\.\.\.)|[^\s\[\]{}]+", text):
            if token == "...":
                out[-1:] = {")": [")+"], ")?": [")*"]}.get(out[-1], [out[-1], "(?: [^ ]+)*"])
            elif token == " | ":
                out.append("|")
            elif token in "[{":
                out.append("(?:")
            elif token in "]}":
                out.append(")?" if token == "]" else ")")
            elif re.fullmatch(r"[a-z-]+", token):
                out.append(f" {token}")
            elif re.fullmatch(r"[a-z|]+", token):
                out.append(f" (?:{token})")
            else:
                out.append(" [^ ]+")
        return "".join(out)

    def problem(self, words, whole):
        """Return why a call is none, or None."""
        plain, batch = [], False
        words = list(words)
        while words:
            word = words.pop(0)
            if not re.match(r"-\D", word):
                plain.append(word)
                continue
            name = word.split("=")[0]
            batch = batch or name in ("-b", "--batch")
            if name not in self.options:
                return f"no option {name}"
            if self.options[name] and "=" not in word and words:
                words.pop(0)
        if not plain:
            return None
        if plain[0] not in self.commands:
            return f"no object {plain[0]}"
        verbs = self.commands[plain[0]]
        rest = plain[1:]
        if None in verbs:
            pattern = verbs[None]
        elif not rest:
            return None
        elif rest[0] not in verbs:
            return f"{plain[0]} has no verb {rest[0]}"
        else:
            pattern = verbs[rest[0]]
            rest = rest[1:]
        given = "".join(" " + word.replace(" ", "_") for word in rest)
        if "..." in rest or (not whole and re.fullmatch(pattern, given + " VALUE")):
            return None
        if re.fullmatch(pattern, given) or (not rest and (batch or not whole)):
            return None
        return f"'{' '.join(rest)}' is not '{pattern}'"


# ---- messages

# A string of C, with the strings and the macros behind it; and a conversion of printf.
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*(?:"(?:[^"\\]|\\.)*"|[A-Z]{3,}\w*))*')
CONVERSIONS = re.compile(r"(?:%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:ll|l|z|h)*[a-zA-Z])+")


def messages(sources):
    """Texts of sources, which are texts, too; what a format inserts is '...'."""
    found = []
    for text in sources:
        defines = dict(re.findall(r'^#define (\w+)\s+"([^"\n]*)"$', text, flags=re.M))
        for match in STRINGS.finditer(text):
            joined = re.sub(r'"\s*([A-Z]{3,}\w*)?\s*"',
                            lambda m: defines.get(m[1], "...") if m[1] else "", match[0])
            joined = joined.strip('"').replace('\\"', '"').replace("%%", "\0")
            joined = CONVERSIONS.sub("...", joined)
            found.append(joined.replace("\0", "%").removesuffix("\\n"))
    return found


def known(message, texts, depth=1):
    """Whether a message is in a text, or is a text in which other texts were inserted."""
    message = re.sub(r"^\.\.\.(?=\W)|(?<=\W)\.\.\.$", "", message)
    if any(message in text for text in texts):
        return True
    for text in texts if depth else ():
        fixed = text.split("...")
        if len(fixed) < 2 or len("".join(fixed)) < 10:
            continue
        match = re.fullmatch("(.*)".join(map(re.escape, fixed)), message)
        if match and all(part in ("", "...") or known(part, texts, depth - 1)
                         for part in match.groups()):
            return True
    return False


# ---- HTML

class HtmlPage(html.parser.HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.problems = set(), set(), []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        for name in ("href", "src", "data"):
            if values.get(name) and tag in ("a", "img", "object", "link", "script"):
                self.links.add(values[name])
        for name in ("id", "name"):
            if values.get(name):
                self.anchors.add(values[name])
        if "problematic" in (values.get("class") or ""):
            self.problems.append(self.getpos()[0])
