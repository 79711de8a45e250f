package keyservice

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/flotilla-io/flotilla/sources/sops"
)

// Segments of a path in Vault.
var (
	vaultSegment  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	vaultSegments = 10
)

// isMount reports whether a text is the path of an engine.
func isMount(text string) bool {
	parts := strings.Split(text, "/")
	if len(parts) > vaultSegments {
		return false
	}
	for _, part := range parts {
		if !vaultSegment.MatchString(part) {
			return false
		}
	}
	return true
}

// server returns the address of a server as scheme and host, "" for what is none.
func server(text string) string {
	at, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil, at.Scheme != "https" && at.Scheme != "http", at.Hostname() == "", at.User != nil:
		return ""
	case strings.Trim(at.Path, "/") != "", at.RawQuery != "", at.Fragment != "":
		return ""
	}
	return at.Scheme + "://" + strings.ToLower(at.Host)
}

// askVault has a key opened by the transit engine of Vault, with its token.
func (a *account) askVault(ctx context.Context, of sops.Recipient) ([]byte, error) {
	at, engine, key := server(of.Fields["vault_address"]), strings.Trim(of.Fields["engine_path"], "/"), of.Fields["key_name"]
	switch {
	case at == "":
		return nil, wrong("sops.hc_vault.vault_address is no https:// or http:// with a host")
	case !isMount(engine) || !vaultSegment.MatchString(key):
		return nil, wrong("sops.hc_vault.engine_path or key_name is no name in Vault")
	}
	if only, set := a.secret[vaultAddress]; set && server(string(only)) != at {
		return nil, refused("its address is not the one of %s, which alone gets the token", vaultAddress)
	}
	token := strings.TrimSpace(string(a.secret[vaultToken]))
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, refused("%s is no token", vaultToken)
	}
	body, err := json.Marshal(map[string]string{"ciphertext": of.Wrapped})
	if err != nil {
		return nil, wrong("its key is no text")
	}
	req, err := post(ctx, at+"/v1/"+engine+"/decrypt/"+key, asJSON, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Vault-Token", token)
	req.Header.Set("X-Vault-Request", "true")
	said, err := a.ask(ctx, "Vault", req)
	if err != nil {
		return nil, err
	}
	switch said.status {
	case http.StatusOK:
	case http.StatusForbidden, http.StatusUnauthorized:
		return nil, refused("Vault refuses the token of %s (HTTP %d): give it one that is valid, with a policy for update of %s/decrypt/%s", vaultToken, said.status, engine, key)
	case http.StatusNotFound:
		return nil, refused("Vault has no transit engine at %s, or no key %s in it (HTTP %d)", engine, key, said.status)
	case http.StatusBadRequest:
		return nil, refused("Vault does not open it (HTTP %d): the key %s of %s is another one, or older than its min_decryption_version", said.status, key, engine)
	default:
		return nil, refused("Vault answers HTTP %d: is it Vault, and the right port?", said.status)
	}
	var answer struct {
		Data struct {
			Plaintext string `json:"plaintext"`
		} `json:"data"`
	}
	if json.Unmarshal(said.body, &answer) != nil {
		return nil, refused("the answer is none of Vault: is it the right port?")
	}
	return decode(base64.StdEncoding, "Vault", answer.Data.Plaintext)
}

// decode returns the key in an answer.
func decode(by *base64.Encoding, who, text string) ([]byte, error) {
	key, err := by.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, refused("the answer of %s has no key", who)
	}
	return key, nil
}
