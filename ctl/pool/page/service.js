// SPDX-License-Identifier: GPL-2.0-only
// Calls of the API, and the stream of events.  The token is in this tab's session only.

const STORAGE = "mgpu-pool-token";
const SILENCE_MS = 45000;   // of a stream that sends a comment every 15 s
const RETRY_MS = [1000, 2000, 4000, 8000, 15000, 30000];

/** An answer that is an error; status 0: the service cannot be reached. */
export class ServiceError extends Error {
    constructor(status, code, text) {
        super(text);
        this.status = status;
        this.code = code;
    }
}

/** Return the token: null before a login, "" where the service needs none. */
export function token() {
    return sessionStorage.getItem(STORAGE);
}

export function setToken(value) {
    if (value === null)
        sessionStorage.removeItem(STORAGE);
    else
        sessionStorage.setItem(STORAGE, value);
}

function headers(more) {
    return { ...(token() ? { Authorization: `Bearer ${token()}` } : {}), ...more };
}

async function errorOf(answer) {
    let error = null;

    try {
        error = (await answer.json()).error;
    } catch {
        // not JSON: a proxy's page
    }
    return new ServiceError(answer.status, error?.code ?? "unknown", error?.text ??
                `The service answered ${answer.status}.`);
}

async function send(path, options) {
    let answer;

    try {
        answer = await fetch(path, {
            cache: "no-store", credentials: "same-origin", redirect: "error", ...options,
        });
    } catch (error) {
        if (error.name === "AbortError")
            throw error;
        throw new ServiceError(0, "unreachable",
                       "The service does not answer. Check the connection, then try again.");
    }
    if (!answer.ok)
        throw await errorOf(answer);
    return answer;
}

/** Call the API: JSON in and out. */
export async function call(method, path, body) {
    const options = { method, headers: headers({ Accept: "application/json" }) };

    if (body !== undefined) {
        options.headers["Content-Type"] = "application/json";
        options.body = JSON.stringify(body);
    }
    const answer = await send(path, options);
    const text = await answer.text();

    return text ? JSON.parse(text) : {};
}

export const get = path => call("GET", path);

/** Fetch a file of the API whole. */
export async function download(path) {
    return (await send(path, { headers: headers({}) })).blob();
}

export function part(text) {
    return encodeURIComponent(text);
}

// ---- the stream ----

/** Take whole events of the stream off the front of a text; returns the rest. */
export function takeEvents(text, fn) {
    let rest = text.replace(/\r\n?/g, "\n");

    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const data = rest.slice(0, end).split("\n").filter(l => l.startsWith("data:"))
            .map(l => l.slice(5).replace(/^ /, "")).join("\n");

        rest = rest.slice(end + 2);
        if (data)
            fn(JSON.parse(data));
    }
    return rest;
}

/**
 * The stream of events.  It connects again by itself, behind the last event that came.
 * on.event(event), on.up() after each connection, on.down(error, seconds to the next attempt).
 */
export class Stream {
    constructor(on, after) {
        this.on = on;
        this.after = after;
        this.tries = 0;
        this.ended = false;
        this.timer = null;
        this.wake = null;
        this.run();
    }

    end() {
        this.ended = true;
        this.abort?.abort();
        this.now();
    }

    /** Do not wait for the next attempt. */
    now() {
        clearTimeout(this.timer);
        this.wake?.();
    }

    async run() {
        while (!this.ended) {
            try {
                await this.read();
            } catch (error) {
                if (this.ended)
                    return;
                if (error.name !== "AbortError" || !this.silent)
                    await this.pause(error);
            }
        }
    }

    pause(error) {
        const ms = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];

        this.on.down(error, ms / 1000);
        return new Promise(resolve => {
            this.wake = resolve;
            this.timer = setTimeout(resolve, ms);
        });
    }

    // A connection that died without a sign is silent, too.
    watch() {
        clearTimeout(this.silence);
        this.silence = setTimeout(() => {
            this.silent = true;
            this.abort.abort();
        }, SILENCE_MS);
    }

    async read() {
        this.abort = new AbortController();
        this.silent = false;
        this.watch();
        try {
            const answer = await send(`/v1/events/stream?after=${this.after}`, {
                headers: headers({ Accept: "text/event-stream" }),
                signal: this.abort.signal,
            });

            this.tries = 0;
            this.on.up();
            await this.readBody(answer.body.getReader());
        } finally {
            clearTimeout(this.silence);
        }
        throw new ServiceError(0, "ended", "The service closed the connection.");
    }

    async readBody(reader) {
        const decoder = new TextDecoder();
        let text = "";

        for (;;) {
            const { value, done } = await reader.read();

            if (done)
                return;
            this.watch();
            text = takeEvents(text + decoder.decode(value, { stream: true }), event => {
                this.after = Math.max(this.after, event.id);
                this.on.event(event);
            });
        }
    }
}
