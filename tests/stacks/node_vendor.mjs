// A Store Orders Service on Node's own http module, written from the specification alone.
// Usage: STORE_KEY=... node node_vendor.mjs '{"form": ...}'; prints {"port", "states_port"} once it listens.
// Every setting decides something that the specification leaves open; `fault` breaks one thing that it does not.
import http from "node:http";
import zlib from "node:zlib";

const KEY = process.env.STORE_KEY;
const form = {
  base: "", again: 404, againBody: "error", cancelled: "gone", conflict: "error", malformed: 400, oddOrders: false,
  ids: "sequential", unknownQuery: "ignore", noise: 0, crowd: 8, shuffle: false, gzip: false, delay: 0, limit: 0,
  hiccup: 0, exactIds: true, empties: true, providerDelay: 0, keepOnTeardown: false, fields: "all", close: false,
  early: false, pets: false, fault: "", ...JSON.parse(process.argv[2] ?? "{}"),
};
const fault = (name) => form.fault === name;
const decode = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const MIN = -(2n ** 63n);
const MAX = 2n ** 63n - 1n;

// ---------------------------------------------------------------- the store
const orders = new Map(); // key(id) -> order; the key is where "double" and "int32" go wrong
const key = (id) => {
  if (fault("double")) return String(Number(id));
  if (fault("int32")) return String(BigInt.asIntN(32, id));
  if (fault("sign")) return String(id < 0n ? -id : id);
  return String(id);
};
let counter = 1000n;
const used = new Set();
function freshId() {
  for (;;) {
    let id = ++counter;
    const random = BigInt.asIntN(64, (BigInt(Math.floor(Math.random() * 2 ** 32)) << 32n)
      | BigInt(Math.floor(Math.random() * 2 ** 32)));
    if (form.ids === "random") id = random;
    if (form.ids === "negative") id = -id;
    if (!used.has(id)) { used.add(id); return id; }
  }
}
function place(status, id = freshId(), owner = "others") {
  const order = {
    id, petId: id % 5n, quantity: Number(BigInt.asUintN(2, id)) + 1, status, owner,
    shipDate: new Date(1.7e12 + Math.floor(Math.random() * 1e10)).toISOString(), complete: status === "shipped",
  };
  orders.set(key(id), order);
  return order;
}
for (let i = 0; i < form.crowd; i++) place(i % 3 ? "pending" : "shipped");
if (form.noise) {
  setInterval(() => { // other clients at work: they place, ship, cancel and delete their own orders
    const theirs = [...orders.values()].filter((o) => o.owner === "others");
    const one = theirs[Math.floor(Math.random() * theirs.length)];
    const dice = Math.random();
    if (dice < 0.4 || !one) place("pending");
    else if (dice < 0.6) Object.assign(one, { status: "shipped", complete: true });
    else orders.delete(key(one.id));
  }, form.noise);
}

// ---------------------------------------------------------------- writing
const DATES = { "epoch-date": (o) => Date.parse(o.shipDate), "null-date": () => "null", "bad-date": () => '"soon"',
  "no-offset-date": (o) => `"${o.shipDate.slice(0, 19)}"` };
function write(order) {
  const quoted = fault("id-as-string") ? `"${order.id}"` : fault("number-json") ? String(Number(order.id)) : `${order.id}`;
  if (form.fields === "id") return `{"id":${quoted}}`;
  const date = (DATES[form.fault] ?? ((o) => `"${o.shipDate}"`))(order);
  const quantity = fault("quantity-text") ? `"${order.quantity}"` : fault("quantity-float") ? order.quantity + 0.5
    : fault("quantity-point-zero") ? `${order.quantity}.0` : order.quantity;
  const complete = fault("complete-number") ? Number(order.complete) : order.complete;
  const extra = form.fields === "extra" ? `,"status":"${order.status}","tags":[null,{"a":1e3}],"note":"ü\\u0000"` : "";
  const twice = fault("name-twice") ? `,"quantity":${quantity}` : "";
  return `{"id":${quoted},"petId":${order.petId},"quantity":${quantity},"shipDate":${date},"complete":${complete}${extra}${twice}}`;
}
function send(req, res, status, body, headers = {}) {
  if (form.close) headers.Connection = "close";
  if (body !== undefined && !headers["Content-Type"]) headers["Content-Type"] = "application/json";
  let bytes = body === undefined ? undefined : Buffer.from(body);
  if (form.gzip && bytes && /\bgzip\b/.test(req.headers["accept-encoding"] ?? "")) {
    bytes = zlib.gzipSync(bytes);
    headers["Content-Encoding"] = "gzip";
  }
  if (bytes && form.lengths !== false) headers["Content-Length"] = bytes.length;
  res.writeHead(status, headers);
  res.end(bytes);
}
function refuse(req, res, status, code, message, headers = {}) {
  let body = { code, message, status };
  const type = { "Content-Type": "application/json; charset=utf-8" };
  if (fault("error-status-text")) body.status = String(status);
  if (fault("error-status-500")) body.status = 500;
  if (fault("error-code-number")) body.code = status;
  if (fault("error-no-message")) delete body.message;
  if (fault("error-message-null")) body.message = null;
  if (fault("error-wrapped")) body = { error: body };
  if (fault("error-list")) body = [body];
  if (fault("error-problem")) type["Content-Type"] = "application/problem+json";
  if (fault("error-empty-code")) body.code = "";
  if (fault("error-stack")) body.message = new Error("no").stack;
  if (fault("error-404-text") && status === 404) return send(req, res, 404, "Not Found", { "Content-Type": "text/plain" });
  if (fault("error-404-html") && status === 404) return send(req, res, 404, "<h1>404</h1>", { "Content-Type": "text/html" });
  if (fault("error-401-empty") && status === 401) return send(req, res, 401, undefined, headers);
  if (fault("error-401-cut") && status === 401) return send(req, res, 401, '{"code":"x","message":"y","status":401', headers);
  return send(req, res, status, JSON.stringify(body), { ...type, ...headers });
}

// ---------------------------------------------------------------- authentication
let trustedUntil = 0;
let refusals = 0;
const lettersOnly = (text) => text.replace(/[^a-z0-9]/gi, "");
function same(token) {
  switch (form.fault) {
    case "key-prefix": return KEY.startsWith(token) && token.length > 0;
    case "key-extended": return token.startsWith(KEY);
    case "key-case": return token.toLowerCase() === KEY.toLowerCase();
    case "key-contains": return token.includes(KEY);
    case "key-inside": return token.length > 2 && KEY.includes(token);
    case "key-length": return token.length === KEY.length;
    case "key-first-eight": return token.slice(0, 8) === KEY.slice(0, 8);
    case "key-any": return token.length > 0;
    case "key-empty-too": return token === KEY || token === "";
    case "key-uuid": return lettersOnly(token).toLowerCase() === lettersOnly(KEY).toLowerCase();
    case "key-jwt-unsigned": return token.split(".").slice(0, 2).join() === KEY.split(".").slice(0, 2).join();
    case "key-url-decoded": try { return decodeURIComponent(token) === KEY; } catch { return false; }
    case "key-base64": return token === KEY || Buffer.from(token, "base64").toString() === KEY;
    case "key-null": return token === KEY || token === "null" || token === "undefined";
    case "key-reversed-too": return token === KEY || token === [...KEY].reverse().join("");
    default: return token === KEY;
  }
}
function known(req, url) {
  const value = req.headers.authorization;
  const [scheme, ...rest] = (value ?? "").split(" ");
  const token = rest.join(" ").trim();
  if (fault("open")) return true;
  if (fault("open-get") && req.method === "GET") return true;
  if (fault("open-delete") && req.method === "DELETE") return true;
  if (fault("missing-is-guest") && value === undefined) return true;
  if (fault("query-key") && url.searchParams.get("api_key") === KEY) return true;
  if (fault("x-api-key") && req.headers["x-api-key"] === KEY) return true;
  if (fault("cookie-key") && (req.headers.cookie ?? "").includes(KEY)) return true;
  if (fault("bare-key") && value === KEY) return true;
  if (fault("token-scheme") && token === KEY) return true;
  if (fault("basic") && scheme === "Basic" && Buffer.from(token, "base64").toString().includes(KEY)) return true;
  if (fault("kept-alive-trust") && req.socket.trusted) return true;
  if (fault("address-trust") && Date.now() < trustedUntil) return true;
  if (fault("lockout") && refusals > 15) return false;
  const good = scheme[fault("scheme-case") ? "toString" : "toLowerCase"]() === (fault("scheme-case") ? "Bearer" : "bearer") && same(token);
  if (good) { req.socket.trusted = true; trustedUntil = Date.now() + 1000; } else refusals += 1;
  return good;
}
function unauthorized(req, res) {
  if (fault("401-is-403")) return refuse(req, res, 403, "forbidden", "no");
  if (fault("401-is-302")) return send(req, res, 302, undefined, { Location: "/login" });
  if (fault("401-is-400")) return refuse(req, res, 400, "bad_request", "no key");
  const challenge = fault("no-challenge") ? {} : { "WWW-Authenticate": 'Bearer realm="store"' };
  return refuse(req, res, 401, "unauthorized", fault("error-tells-key") ? `not ${KEY}` : "a valid API key is needed", challenge);
}

// ---------------------------------------------------------------- the two operations
let cache;
async function list(req, res, url) {
  if (form.unknownQuery === 400 && url.search) return refuse(req, res, 400, "unknown_parameter", "no parameters here");
  let all = [...orders.values()].filter((o) => o.status !== "cancelled" || form.cancelled !== "gone");
  const q = url.searchParams;
  if (fault("limit-100")) all = all.slice(-100);
  if (fault("limit-1000")) all = all.slice(-1000);
  if (fault("limit-param") && q.has("limit")) all = all.slice(0, Number(q.get("limit")));
  if (fault("page-param") && q.has("page")) all = all.slice(20 * (Number(q.get("page")) - 1), 20 * Number(q.get("page")));
  if (fault("offset-param") && q.has("offset")) all = all.slice(Number(q.get("offset")));
  if (fault("status-param") && q.has("status")) all = all.filter((o) => o.status === q.get("status"));
  if (fault("complete-param") && q.has("complete")) all = all.filter((o) => String(o.complete) === q.get("complete"));
  if (fault("pet-param") && q.has("petId")) all = all.filter((o) => String(o.petId) === q.get("petId"));
  if (fault("hides-shipped")) all = all.filter((o) => o.status !== "shipped");
  if (fault("hides-pending")) all = all.filter((o) => o.status !== "pending");
  if (fault("hides-negative")) all = all.filter((o) => o.id >= 0n);
  if (fault("lists-last-twice") && all.length) all.push(all[all.length - 1]);
  if (fault("loses-one")) all.splice(Math.floor(Math.random() * all.length), 1);
  if (form.shuffle) all = all.map((o) => [Math.random(), o]).sort((a, b) => a[0] - b[0]).map((pair) => pair[1]);
  let texts = all.map(write);
  if (fault("null-order")) texts.push("null");
  if (fault("id-beyond-int64")) texts.push('{"id":9223372036854775808}');
  if (form.oddOrders) texts.splice(texts.length >> 1, 0, "{}", '{"petId":3}', '{"quantity":0,"complete":false}', "{}");
  let body = `[${texts.join(",")}]`;
  if (fault("cached")) {
    if (cache && Date.now() < cache.until) body = cache.body;
    else cache = { body, until: Date.now() + 2000 };
  }
  if (fault("wrapped-list")) body = `{"orders":${body}}`;
  if (fault("trailing-comma") && texts.length) body = body.replace(/]$/, ",]");
  if (fault("byte-order-mark")) body = `\ufeff${body}`;
  if (fault("after-json")) body += "<!-- 3 ms -->";
  if (fault("empty-404") && !texts.length) return refuse(req, res, 404, "no_orders", "no orders");
  if (fault("empty-null") && !texts.length) body = "null";
  if (fault("list-ships")) for (const o of orders.values()) if (o.owner === "suite") o.status = "shipped";
  if (fault("list-counts")) for (const o of orders.values()) o.quantity += 1;
  const headers = {};
  if (fault("list-as-html")) headers["Content-Type"] = "text/html";
  if (fault("list-as-text-json")) headers["Content-Type"] = "text/json";
  return send(req, res, fault("list-206") ? 206 : 200, body, headers);
}

function read(text) {
  if (fault("parse-int")) return Number.isNaN(parseInt(text, 10)) ? null : BigInt(parseInt(text, 10));
  if (fault("parse-number")) return Number.isInteger(Number(text)) ? BigInt(Number(text)) : null;
  if (fault("parse-float")) return Number.isNaN(parseFloat(text)) ? null : BigInt(Math.floor(parseFloat(text)));
  if (!/^-?[0-9]+$/.test(text)) return null;
  if (fault("parse-digits-18")) return BigInt(text.slice(0, 18));
  return BigInt(text);
}
const done = (req, res) => {
  if (fault("204-is-200")) return send(req, res, 200, '{"cancelled":true}');
  if (fault("204-is-202")) return send(req, res, 202, undefined);
  if (fault("204-content-length")) return send(req, res, 204, undefined, { "Content-Length": "0" });
  if (fault("204-with-body")) {
    req.socket.write("HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n{}");
    return req.socket.end();
  }
  return send(req, res, 204, undefined);
};
async function cancel(req, res, text) {
  if (fault("needs-content-type") && !req.headers["content-type"]) return refuse(req, res, 415, "unsupported_media_type", "send JSON");
  if (fault("needs-body") && !Number(req.headers["content-length"])) return refuse(req, res, 400, "body", "a reason is needed");
  const id = read(text);
  if (id === null) return refuse(req, res, form.malformed, "malformed_id", "orderId is an int64");
  if (fault("500-beyond-double") && BigInt(Number(id)) !== id) return refuse(req, res, 500, "oops", "internal error");
  if (fault("500-negative") && id < 0n) return refuse(req, res, 500, "oops", "internal error");
  if (fault("400-zero") && id <= 0n) return refuse(req, res, 400, "malformed_id", "orderId starts at 1");
  const order = id < MIN || id > MAX ? undefined : orders.get(key(id));
  if (!order) {
    if (fault("absent-204")) return done(req, res);
    if (fault("absent-400")) return refuse(req, res, 400, "unknown", "no such order");
    if (fault("absent-410")) return refuse(req, res, 410, "gone", "no such order");
    if (fault("absent-200")) return send(req, res, 200, "null");
    if (fault("again-204") && used.has(id)) return done(req, res);
    return refuse(req, res, 404, "order_not_found", "no such order");
  }
  if (order.status === "cancelled") {
    if (fault("again-204") || fault("soft-deleted")) return done(req, res);
    const html = { "Content-Type": "text/html" };
    if (form.again === 404 || form.againBody === "error") return refuse(req, res, form.again, "already_cancelled", "cancelled before");
    return send(req, res, form.again, form.againBody === "none" ? undefined : "<p>cancelled before</p>", html);
  }
  if (order.status === "shipped" && !fault("ships-are-cancelled")) {
    if (fault("shipped-404")) return refuse(req, res, 404, "order_not_found", "no such order");
    if (fault("shipped-400")) return refuse(req, res, 400, "shipped", "already shipped");
    if (fault("shipped-204-unchanged")) return done(req, res);
    if (fault("refused-vanishes")) orders.delete(key(id));
    if (fault("refused-becomes-pending")) order.status = "pending";
    if (fault("refused-changes")) order.quantity += 1;
    if (fault("refused-once")) { order.tries = (order.tries ?? 0) + 1; if (order.tries > 1) return done(req, res); }
    if (form.conflict === "none") return send(req, res, 409, undefined);
    if (form.conflict === "html") return send(req, res, 409, "<h1>shipped</h1>", { "Content-Type": "text/html" });
    if (form.conflict === "text") return send(req, res, 409, "shipped", { "Content-Type": "text/plain" });
    if (form.conflict === "order") return send(req, res, 409, write(order));
    return refuse(req, res, 409, "already_shipped", "the order has shipped");
  }
  if (fault("race")) await pause(20);
  if (fault("race-500")) {
    if (order.busy) return refuse(req, res, 500, "deadlock", "try again");
    order.busy = true;
    await pause(20);
  }
  const others = [...orders.values()].filter((o) => o !== order && o.owner === "suite");
  if (fault("cancels-pet")) for (const o of others) if (o.petId === order.petId && o.status === "pending") orders.delete(key(o.id));
  if (fault("cancels-neighbour")) orders.delete(key(id + 1n));
  if (fault("ships-neighbour")) for (const o of others) if (o.id === id + 1n) o.status = "shipped";
  if (fault("changes-others")) for (const o of others) o.quantity += 1;
  if (fault("cancel-no-op")) return done(req, res);
  order.status = "cancelled";
  if (form.cancelled === "gone" && !fault("soft-deleted")) orders.delete(key(id));
  return done(req, res);
}

let seen = 0;
let windowStart = Date.now();
let inWindow = 0;
const service = http.createServer({ keepAliveTimeout: form.keepAlive ?? 5000 }, async (req, res) => {
  req.resume();
  seen += 1;
  if (form.early) { res.writeProcessing(); res.writeEarlyHints({ link: "</s.css>; rel=preload" }); }
  if (form.delay) await pause(form.delay);
  if (form.limit) {
    if (Date.now() - windowStart > 1000) { windowStart = Date.now(); inWindow = 0; }
    if (++inWindow > form.limit) return send(req, res, 429, '{"slow":"down"}', { "Retry-After": "1" });
  }
  if (form.hiccup && seen % form.hiccup === 0) return send(req, res, 503, "busy", { "Retry-After": "1", "Content-Type": "text/plain" });
  if (fault("drops") && seen % 9 === 0) return req.socket.destroy();
  const url = new URL(req.url, "http://localhost");
  const path = url.pathname.startsWith(`${form.base}/v1/`) ? url.pathname.slice(form.base.length + 3) : null;
  const one = path === null ? null : /^\/store\/orders\/([^/]+)$/.exec(path);
  const text = one ? decode(one[1]) : null;
  const order = one && /^-?[0-9]+$/.test(text) ? orders.get(key(BigInt(text))) : undefined;
  if (one && req.method === "DELETE") {
    if (fault("404-before-401") && !order) return refuse(req, res, 404, "order_not_found", "no such order");
    if (fault("409-before-401") && order?.status === "shipped") return refuse(req, res, 409, "already_shipped", "shipped");
  }
  const pet = path === null ? null : /^\/pets\/([^/]+)$/.exec(path);
  if (pet && fault("pets-open")) return send(req, res, 200, '{"id":1,"name":"Rex"}');
  if (!known(req, url)) {
    if (fault("work-before-auth") && order?.status === "pending" && req.method === "DELETE") orders.delete(key(order.id));
    return unauthorized(req, res);
  }
  if (pet && form.pets) {
    const old = fault("deprecation-true") ? { Deprecation: "true" } : { Deprecation: "@1767225600", Sunset: "Fri, 01 Jan 2027 00:00:00 GMT" };
    return req.method === "GET" ? send(req, res, 200, '{"id":1,"name":"Rex"}', old) : refuse(req, res, 405, "method", "GET only");
  }
  if (path === "/store/orders" && (req.method === "GET" || req.method === "HEAD")) return list(req, res, url);
  if (one && req.method === "DELETE") return cancel(req, res, text);
  return refuse(req, res, path === "/store/orders" || one ? 405 : 404, "not_found", "nothing here");
});

// ---------------------------------------------------------------- the state provider, on a port of its own
const states = http.createServer(async (req, res) => {
  let text = "";
  for await (const chunk of req) text += chunk;
  if (form.providerDelay) await pause(form.providerDelay);
  const message = JSON.parse(text);
  const exact = [.../"(?:ids|orderIds)"\s*:\s*\[([^\]]*)\]/.exec(text)?.[1].matchAll(/-?\d+/g) ?? []].map((m) => BigInt(m[0]));
  const answer = (status, body) => { res.writeHead(status, { "Content-Type": "application/json" }); res.end(body); };
  if (message.action === "teardown") {
    if (!form.keepOnTeardown) for (const id of exact) orders.delete(key(id));
    return answer(200, "{}");
  }
  if (message.state === "no orders") {
    if (!form.empties) return answer(501, "{}");
    orders.clear();
    return answer(200, "{}");
  }
  const status = { "pending orders": "pending", "shipped orders": "shipped" }[message.state];
  if (!status) return answer(400, "{}");
  if (message.params.ids && !form.exactIds) return answer(501, "{}");
  const ids = message.params.ids ? exact : Array.from({ length: message.params.count }, freshId);
  for (const id of ids) { used.add(id); place(status, id, "suite"); }
  return answer(200, `{"orderIds":[${ids.join(",")}]}`);
});
service.listen(0, "127.0.0.1", () => states.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({ port: service.address().port, states_port: states.address().port }));
}));
