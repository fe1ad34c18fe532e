# SPDX-License-Identifier: GPL-2.0-only
"""Read the description of a GPU API, for the generators of what is made of it.

A description is a mapping:

    api: NAME
    types:
      scalars: {TYPE: BYTES}    numbers
      structs: {TYPE: BYTES}    what else lies in memory
      handles: {TYPE: ERROR}    objects, and the error of an argument that is none
      roots: [TYPE]             handles that the API has, and that are not made or released
      callbacks: {NAME: C}      C declarations of functions, with %s for the name
      called: [NAME]            callbacks that the front end calls after the call, with the object
                                that it made or was about
      addresses: [TYPE]         numbers that name memory which a call makes
      named: [TYPE]             handles that the API has special values of
      status: C                 the type of errors
      dispatch: C               the type of the table of all functions, for the API's loader; without
                                it the front end has the functions as symbols, and no object keeps
                                the one that it was made from
      library: NAME             what the library's name begins with that programs are linked with
      current: TYPE             objects of which each thread of the program has a current one
    errors: {lost, missing, value, list, memory, device_memory: ERROR,
             early: ERROR       before the front end is connected
             lists: {ARGUMENT: ERROR}}
    unlike: [ARGUMENT]          never compared, see below
    functions:
      SYMBOL:
        args:                   in the order of the C prototype
          NAME: FORM
        returns: nothing | status | data | TYPE of a handle
        answers: true           if the call cannot be put off (default: false)
        blocks: true | NAME     it waits for its data; or: unless the argument NAME is 0
    inner:                      functions between front end and server, in the same form
    outside:                    functions that fail: {SYMBOL: {returns: C, args: C}}; an argument
                                errcode_ret gets the error; or [SYMBOL], where all return status

FORM is one of

    TYPE                        number or handle; 'maybe TYPE': handle or NULL; a structure of at
                                most 16 bytes that lies in two registers
    in TYPE [* LENGTH]          memory that the call reads; 'maybe in': or NULL
    out TYPE [* LENGTH]         memory that the call, or what it starts, writes; NULL: not asked for
    new TYPE                    the call makes an object if this is not NULL
    string                      text that ends with a NUL; 'maybe string': or NULL
    texts TYPE * LENGTH [by NAME]
                                texts, that end with a NUL or have the lengths that NAME has
    list TYPE                   pairs of a key and a value, that end with a 0
    callback NAME               function that the API calls; the next argument is handed to it
    pointer                     address that the call keeps
    params                      pointers to the values of a kernel's parameters

TYPE is void for bytes and status for the API's error. LENGTH is in elements: a sum or product of
numbers, names of arguments, and functions of arguments, or unknown.

Keys for the analysis of loops:

    also: [SYMBOL]              further functions of the same form
    cases: {NAME: {VALUE: {NAME: FORM}}}
                                where the number NAME has that value, other arguments have another
                                form
    local: true | once          the program's own library answers, without the GPU: the answer is
                                there also while other calls are put off; once: it is the same
                                each time
    configuration: push | pop   a local call whose arguments the next pop gives back

Keys for remoting:

    like: all | [NAME]          put off the call if one with the same values of these arguments
                                succeeded: then only a lack of resources lets it fail
    current: true               the request has the thread's current object; the server makes it
                                its own
    early: true                 the front end need not be connected
    late: true                  what the call writes comes after it, before the next reply
    ranges: {NAME: EXPR}        as many bytes from the address NAME on must be the application's
    bounds: {NAME: EXPR}        EXPR must not be more than the size of the object NAME
    size, unit: EXPR            of the object that is made: its bytes, and those of a pixel
    shape: EXPR                 where the bytes of the argument of type void lie in its memory
    flushes: true               what was put off is sent
    waits: true                 it may wait for what another thread of the program does
    memory: true                the object's size counts for the limit of memory
    refuse: C                   the server fails the call if this is true
    list: {KEY: value | TYPE}   keys that the argument of the form list may have
    names: FIRST-LAST           values of param_name that are answered; the call's last three
                                arguments are its answer's size, memory and true size
    info: {VALUE: HOW}          further values, and how they are answered: TYPE (handles), parent
                                TYPE, references, list (that the object was made with), front (by
                                the server, then looked at by hand), local (by hand), refused
    retains, releases: NAME     it counts references of this argument
    front: hand | alone | core  by hand in the front end; alone: the server does not know it; core:
                                in the part that all APIs have
    server: hand                by hand in the server
    outside: ERROR              the call fails
    prototype: C                its arguments in C, if the forms do not tell
"""

import re
import sys

import yaml

MAX_ARGS = 16
FORM = re.compile(r"(?P<maybe>maybe )?(?:(?P<way>in|out|new|texts|list|callback) )?(?P<type>\w+)"
                  r"(?: \* (?P<length>.+?))?(?: by (?P<by>\w+))?")
TOKEN = re.compile(r"\s*(?:(\d+)|(\w+)|([+*(),]))")
KEYS = {"args", "returns", "answers", "blocks", "like", "bounds", "size", "unit", "memory",
        "refuse", "list", "shape", "flushes", "waits", "prototype", "names", "info", "retains",
        "releases", "front", "server", "outside", "current", "early", "late", "ranges"}
ANALYSIS = {"also", "cases", "local", "configuration"}
IN_REGISTERS = 6                # words of arguments


def fail(where, what):
    """End with an error that names the place in the description."""
    sys.exit(f"{sys.argv[0]}: {where}: {what}")


def parse(where, text):
    """Return an expression as nested tuples: number, name, call, +, *."""
    tokens = []
    pos = 0
    text = text.strip()
    while pos < len(text):
        match = TOKEN.match(text, pos)
        if not match:
            fail(where, f"'{text}' is not an expression")
        tokens.append(match[0].strip())
        pos = match.end()

    def atom():
        if not tokens:
            fail(where, f"'{text}' ends too early")
        token = tokens.pop(0)
        if token.isdigit():
            return ("number", int(token))
        if tokens and tokens[0] == "(":
            tokens.pop(0)
            args = [total()]
            while tokens and tokens[0] == ",":
                tokens.pop(0)
                args.append(total())
            if not tokens or tokens.pop(0) != ")":
                fail(where, f"')' is missing in '{text}'")
            return ("call", token, args)
        return ("name", token)

    def product():
        left = atom()
        while tokens and tokens[0] == "*":
            tokens.pop(0)
            left = ("*", left, atom())
        return left

    def total():
        left = product()
        while tokens and tokens[0] == "+":
            tokens.pop(0)
            left = ("+", left, product())
        return left

    tree = total()
    if tokens:
        fail(where, f"'{tokens[0]}' is not expected in '{text}'")
    return tree


def names_in(tree):
    """Yield the names of an expression."""
    if tree[0] == "name":
        yield tree[1]
    elif tree[0] == "call":
        for arg in tree[2]:
            yield from names_in(arg)
    elif tree[0] in "+*":
        yield from names_in(tree[1])
        yield from names_in(tree[2])


class Arg:
    """An argument: its form, as attributes."""

    def __init__(self, api, where, name, text):
        self.name, self.maybe, self.by, self.length = name, False, None, None
        match = FORM.fullmatch(str(text))
        if not match:
            fail(where, f"'{text}' is no form of an argument")
        self.maybe, self.by, self.type = bool(match["maybe"]), match["by"], match["type"]
        self.way = match["way"]
        if not self.way:
            if self.type in ("string", "params", "pointer"):
                self.way = self.type
            elif self.type in api.handles:
                self.way = "handle"
            elif self.type in api.scalars:
                self.way = "scalar"
            elif self.type in api.structs:
                self.way = "value"
            else:
                fail(where, f"unknown type '{self.type}'")
        if self.way in ("in", "out", "new") and self.type not in (
                {"void", "status"} | set(api.handles) | set(api.scalars) | set(api.structs)):
            fail(where, f"unknown type '{self.type}'")
        if self.way == "callback" and self.type not in api.callbacks:
            fail(where, f"unknown callback '{self.type}'")
        if match["length"] and match["length"] != "unknown":
            self.length = parse(where, match["length"])
        elif self.way in ("in", "out") and not match["length"]:
            self.length = ("number", 1)
        if self.way == "value" and not 8 < api.structs[self.type] <= 16:
            fail(where, f"'{self.type}' does not lie in two registers")
        self.is_handle = self.type in api.handles
        self.words = 2 if self.way == "value" else 1
        self.bytes = (8 if self.is_handle else {"void": 1, "status": 4}.get(self.type) or
                      {**api.scalars, **api.structs}.get(self.type, 8))


class Function:
    """A call of the API."""

    def __init__(self, api, symbol, desc):
        unknown = set(desc) - KEYS - ANALYSIS
        if unknown:
            fail(symbol, f"unknown key '{unknown.pop()}'")
        self.api, self.name, self.desc = api, symbol, desc
        self.args = [Arg(api, f"{symbol}, {name}", name, text)
                     for name, text in (desc.get("args") or {}).items()]
        if sum(arg.words for arg in self.args) > MAX_ARGS:
            fail(symbol, f"more than {MAX_ARGS} arguments")
        word = 0
        for arg in self.args:
            word += arg.words
            if arg.way == "value" and word > IN_REGISTERS:
                fail(symbol, f"'{arg.name}' does not lie in registers")
        self.names = [arg.name for arg in self.args]
        self.returns = desc.get("returns")
        if self.returns not in ({"nothing", "status", "data"} | set(api.handles)):
            fail(symbol, f"returns: unknown '{self.returns}'")
        self.makes = self.returns in api.handles
        self.answers, self.blocks = bool(desc.get("answers")), desc.get("blocks", False)
        if isinstance(self.blocks, str) and self.blocks not in self.names:
            fail(symbol, f"blocks: no argument is called '{self.blocks}'")
        self.result = None              # where a call that returns an object puts its error
        for arg in self.args:
            if self.makes and arg.way == "out" and arg.type == "status" and \
                    arg.length == ("number", 1):
                self.result = arg
            for name in names_in(arg.length) if arg.length else ():
                if name not in self.names:
                    fail(symbol, f"no argument is called '{name}'")

        self.local, self.configuration = desc.get("local", False), desc.get("configuration")
        if self.local not in (False, True, "once"):
            fail(symbol, f"local: unknown '{self.local}'")
        if self.configuration not in (None, "push", "pop"):
            fail(symbol, f"configuration: unknown '{self.configuration}'")
        self.symbols = [symbol, *desc.get("also", ())]
        self.case, self.cases = self.read_cases(desc.get("cases") or {})

    def read_cases(self, desc):
        """Return the number that decides on the forms, and a function for each of its values."""
        if not desc:
            return None, {}
        if len(desc) > 1:
            fail(self.name, "cases: more than one argument decides")
        (name, cases), = desc.items()
        if name not in self.names or self.arg(name).way != "scalar":
            fail(self.name, f"cases: no number is called '{name}'")
        functions = {}
        for value, forms in cases.items():
            for other in forms:
                if other not in self.names:
                    fail(self.name, f"cases: no argument is called '{other}'")
            functions[int(value)] = Function(self.api, self.name, {
                key: text for key, text in {**self.desc, "args": {**self.desc["args"], **forms}}
                .items() if key != "cases"})
        return name, functions

    def arg(self, name):
        """Return the argument of this name."""
        return self.args[self.names.index(name)]

    def word(self, name):
        """Return the number of the argument of this name, if one in two registers counts twice."""
        return sum(arg.words for arg in self.args[:self.names.index(name)])


class Api:
    """A description."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        desc = yaml.safe_load(self.text)
        types = desc["types"]
        self.name = desc["api"]
        self.scalars, self.structs = types["scalars"], types.get("structs") or {}
        self.handles, self.roots = types["handles"], types.get("roots") or []
        self.callbacks, self.called = types.get("callbacks") or {}, types.get("called") or []
        self.status, self.dispatch = types.get("status", "int"), types.get("dispatch")
        self.addresses, self.current = types.get("addresses") or [], types.get("current")
        self.library = types.get("library")
        self.named = types.get("named") or []
        self.errors, self.unlike = desc.get("errors") or {}, desc.get("unlike") or []
        self.functions = [Function(self, symbol, text)
                          for symbol, text in desc["functions"].items()]
        self.inner = [Function(self, symbol, text)
                      for symbol, text in (desc.get("inner") or {}).items()]
        self.outside = desc.get("outside") or {}
        if isinstance(self.outside, list):
            self.outside = {name: {"returns": self.status, "args": "void"}
                            for name in self.outside}
