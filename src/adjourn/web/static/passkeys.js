"use strict";
// Passkeys: add one, log in with one, sign a decision with one.
const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
async function send(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const document = await answer.json();
  if (!answer.ok) throw new Error(document.detail || "it was refused");
  return document;
}
function tell(error) {
  const place = document.querySelector("#passkey-error, #settled");
  if (!place) return;
  place.textContent = `The passkey did not work: ${error.message}`;
  place.hidden = false;
}
async function assertion(asked) {
  const found = await navigator.credentials.get({ publicKey: {
    challenge: decode(asked.challenge), rpId: asked.rp_id, userVerification: "required",
    allowCredentials: asked.allow.map((id) => ({ type: "public-key", id: decode(id) })) } });
  const { authenticatorData, clientDataJSON, signature } = found.response;
  return { id: found.id, authenticator_data: encode(authenticatorData), client_data: encode(clientDataJSON), signature: encode(signature) };
}
const works = window.PublicKeyCredential !== undefined;

const add = document.querySelector("#passkey-add");
if (add && works) {
  add.hidden = false;
  add.addEventListener("click", async () => {
    try {
      const asked = await send("/account/passkeys/begin", {});
      const made = await navigator.credentials.create({ publicKey: {
        challenge: decode(asked.challenge), rp: { id: asked.rp_id, name: "adjourn" },
        user: { id: decode(asked.user_id), name: asked.user, displayName: asked.user },
        pubKeyCredParams: [-7, -257, -8].map((alg) => ({ type: "public-key", alg })),
        excludeCredentials: asked.exclude.map((id) => ({ type: "public-key", id: decode(id) })),
        authenticatorSelection: { residentKey: "required", userVerification: "required" } } });
      await send("/account/passkeys/add", { name: document.querySelector("#passkey-name").value, id: made.id,
        attestation: encode(made.response.attestationObject), client_data: encode(made.response.clientDataJSON) });
      location.reload();
    } catch (error) { tell(error); }
  });
}

const login = document.querySelector("#passkey-login");
if (login && works) {
  login.hidden = false;
  login.addEventListener("click", async () => {
    try {
      await send("/login/passkey", await assertion(await send("/login/passkey/begin", {})));
      location.assign(login.dataset.next);
    } catch (error) { tell(error); }
  });
}

// The document of the decision is what is signed: its digest is the challenge
for (const form of works ? document.querySelectorAll("form[data-passkey]") : []) {
  const button = form.querySelector("[data-sign]");
  button.hidden = false;
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const asked = await send(`${form.getAttribute("action")}/sign`, Object.fromEntries(new FormData(form)));
      const done = await send(`${form.getAttribute("action")}/signed`, { document: asked.document, assertion: await assertion(asked) });
      location.assign(done.next);
    } catch (error) { button.disabled = false; tell(error); }
  });
}
