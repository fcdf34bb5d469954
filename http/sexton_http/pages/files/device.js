// Approves a terminal: makes a token for it, encrypts it for the terminal's key, and shows the code.
"use strict";

(() => {
  const INFO = "m74-002-v1";
  const POLL_MS = 2000;
  const CODES = 1000000;
  const root = document.getElementById("device");
  const at = `/v1/auth/sessions/${root.dataset.sessionId}`;
  const approve = document.getElementById("approve");
  const refuse = document.getElementById("refuse");

  function show(id) {
    for (const part of root.querySelectorAll("[data-part]")) part.hidden = part.id !== id;
    const part = document.getElementById(id);
    part.focus();
  }

  function fail(reason) {
    document.getElementById("reason").textContent = reason;
    show("failed");
  }

  function decode(text) {
    const plain = atob(text.replace(/=+$/, "").replace(/-/g, "+").replace(/_/g, "/"));
    return Uint8Array.from(plain, (character) => character.charCodeAt(0));
  }

  function encode(bytes) {
    const plain = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join("");
    return btoa(plain).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  }

  function code() {
    // What is beyond the last whole million is thrown away, so that every code is as likely as any other.
    const limit = Math.floor(2 ** 32 / CODES) * CODES;
    const drawn = new Uint32Array(1);
    do crypto.getRandomValues(drawn); while (drawn[0] >= limit);
    return String(drawn[0] % CODES).padStart(6, "0");
  }

  async function call(method, path, body, token) {
    const headers = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    const answer = await fetch(path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin",
    });
    if (answer.status === 204) return null;
    const said = await answer.json();
    if (!answer.ok) throw new Error(`${said.detail} (${said.error_code})`);
    return said;
  }

  async function encrypt(token) {
    const curve = { name: "ECDH", namedCurve: "P-256" };
    const theirs = await crypto.subtle.importKey("spki", decode(root.dataset.publicKey), curve, false, []);
    const ours = await crypto.subtle.generateKey(curve, false, ["deriveBits"]);
    const shared = await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, ours.privateKey, 256);
    const material = await crypto.subtle.importKey("raw", shared, "HKDF", false, ["deriveKey"]);
    const text = new TextEncoder();
    const key = await crypto.subtle.deriveKey(
      { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info: text.encode(INFO) },
      material, { name: "AES-GCM", length: 256 }, false, ["encrypt"],
    );
    const nonce = crypto.getRandomValues(new Uint8Array(12));
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce }, key, text.encode(token));
    return {
      dashboard_public_key: encode(await crypto.subtle.exportKey("spki", ours.publicKey)),
      ciphertext: encode(sealed),
      nonce: encode(nonce),
    };
  }

  async function watch() {
    let status = "verification_pending";
    while (status === "verification_pending") {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      try {
        status = (await call("GET", at)).status;
      } catch (problem) {
        continue; // The server may be away for a moment; the terminal is not waiting for this page.
      }
    }
    if (status === "consumed") show("done");
    else fail(status === "expired" ? "The terminal did not ask in time." : "The sign-in was ended.");
  }

  async function onApprove() {
    approve.disabled = refuse.disabled = true;
    try {
      const { token } = await call("POST", "/auth/token", { session_id: root.dataset.sessionId });
      const digits = code();
      await call("PATCH", `${at}/approve`, { ...(await encrypt(token)), verification_code: digits }, token);
      document.getElementById("code").textContent = digits;
      show("approved");
      await watch();
    } catch (problem) {
      fail(problem.message);
    }
  }

  async function onRefuse() {
    approve.disabled = refuse.disabled = true;
    try {
      await call("DELETE", at);
      show("refused");
    } catch (problem) {
      fail(problem.message);
    }
  }

  if (!window.isSecureContext || !crypto.subtle) {
    fail("A browser encrypts only on pages from HTTPS or from this machine itself. Open this page there.");
  } else {
    approve.disabled = refuse.disabled = false;
    approve.addEventListener("click", onApprove);
    refuse.addEventListener("click", onRefuse);
  }
})();
