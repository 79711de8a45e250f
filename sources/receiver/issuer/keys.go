package issuer

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gopkg.in/go-jose/go-jose.v2"

	"github.com/flotilla-io/flotilla/internal/egress"
)

const (
	// mostKeys is how many keys of an issuer are looked at, and mostNamed how many of one name are tried.
	mostKeys, mostNamed = 100, 4
	// The sizes of RSA keys that count, in bits: what is larger takes seconds to verify with.
	leastRSA, mostRSA = 2048, 8192
)

// keySet are keys of an issuer.
type keySet []jose.JSONWebKey

// named returns the keys of a name; all for a token that names none.
func (s keySet) named(name string) keySet {
	var out keySet
	for _, key := range s {
		if (name == "" || key.KeyID == name) && len(out) < mostNamed {
			out = append(out, key)
		}
	}
	return out
}

// VerifySignature implements oidc.KeySet.
func (s keySet) VerifySignature(_ context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSigned(token)
	if err != nil {
		return nil, err
	}
	for _, key := range s {
		if payload, err := signed.Verify(key.Key); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("no key has signed it")
}

// ask returns the keys that an issuer has now.
func (x *Issuers) ask(ctx context.Context, issuer string) (keySet, error) {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := x.get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &about); err != nil {
		return nil, err
	}
	if about.Issuer != issuer {
		return nil, errors.New("who answers says that it is another one")
	}
	var all struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := x.get(ctx, about.Keys, &all); err != nil {
		return nil, err
	}
	var out keySet
	for _, raw := range all.Keys[:min(len(all.Keys), mostKeys)] {
		var key jose.JSONWebKey
		if isSmall(raw) && json.Unmarshal(raw, &key) == nil && counts(key) {
			out = append(out, key)
		}
	}
	return out, nil
}

// isSmall reports whether a key is public, and not larger than counts: to read another one may take minutes.
func isSmall(raw json.RawMessage) bool {
	var sizes struct {
		N string `json:"n"`
		D string `json:"d"`
	}
	return json.Unmarshal(raw, &sizes) == nil && sizes.D == "" && len(sizes.N) <= base64.RawURLEncoding.EncodedLen(mostRSA/8+1)
}

// counts reports whether signatures with a key are verified: it is a public one, and not of a size that costs others.
func counts(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= leastRSA && public.N.BitLen() <= mostRSA
	case *ecdsa.PublicKey:
		return true
	default:
		return false
	}
}

// get reads JSON. Errors contain nothing of the answer.
func (x *Issuers) get(ctx context.Context, address string, into any) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the address of its keys is none")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("its address is none")
	}
	resp, err := x.client.Do(req)
	if err != nil {
		return egress.Fault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers HTTP %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return egress.Fault(err)
	}
	if json.Unmarshal(text, into) != nil {
		return errors.New("its answer is not that of an OpenID Connect issuer")
	}
	return nil
}
