// Package webhook judges what forges and registries send to a Receiver.
//
// In go the type of the Receiver, the token that both sides know, and the request as it came, header and body; out
// come whether the sender knows the token, what has happened, as the sender calls it, and which refs were pushed. A
// request is public and hostile until it is verified. The package has no clock and no network, so that tokens that an
// issuer signed are verified elsewhere.
package webhook

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what Nexus and old servers sign with: an HMAC of it is not known to be forged
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
)

// Request is what somebody sent.
type Request struct {
	// Header returns the first value of a header; empty if there is none.
	Header func(name string) string
	// Body is all of the body.
	Body []byte
}

// ErrDenied says that the sender does not know the token.
var ErrDenied = errors.New("the request is not signed with the token of the Receiver's Secret")

// proofs say how a sender of each type proves that it knows the token. Those that are missing here prove nothing but that
// they know the address, or have a token of an issuer.
var proofs = map[string]func(r Request, token string) error{
	notificationv1.GenericHMACReceiver: signed("X-Signature", "sha224", "sha256", "sha384", "sha512"),
	notificationv1.GitHubReceiver:      github,
	notificationv1.BitbucketReceiver:   signed("X-Hub-Signature", "sha1", "sha256", "sha512"),
	notificationv1.NexusReceiver:       nexus,
	notificationv1.GitLabReceiver:      shown("X-Gitlab-Token"),
	notificationv1.HarborReceiver:      shown("Authorization"),
}

// Verify returns an error unless the sender of a request to a Receiver of a type knows the token. Of the types generic,
// dockerhub, quay, acr and cdevents nothing is asked: whoever knows the address may send. Errors: ErrDenied.
func Verify(kind string, r Request, token string) error {
	proof := proofs[kind]
	if proof == nil {
		return nil
	}
	if token == "" { // everybody knows that
		return ErrDenied
	}
	return proof(r, token)
}

// ByIssuer reports whether requests to a Receiver of a type carry a token that an issuer signed.
func ByIssuer(kind string) bool {
	return kind == notificationv1.GenericOIDCReceiver || kind == notificationv1.GCRReceiver
}

// hashes are those that a signature may name.
var hashes = map[string]func() hash.Hash{
	"sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// signed returns the proof by a header such as "sha256=4f9c…", the HMAC of the body.
func signed(header string, allowed ...string) func(Request, string) error {
	return func(r Request, token string) error {
		value := r.Header(header)
		if value == "" {
			return fmt.Errorf("%w: the header %s is missing", ErrDenied, header)
		}
		name, sum, _ := strings.Cut(value, "=")
		for _, known := range allowed {
			if name == known {
				return match(hashes[name], r.Body, sum, token)
			}
		}
		return fmt.Errorf("%w: the header %s has to begin with one of %s=", ErrDenied, header, strings.Join(allowed, "=, "))
	}
}

// github takes the older header only of a server that does not send the other.
func github(r Request, token string) error {
	if sha256Header := "X-Hub-Signature-256"; r.Header(sha256Header) != "" || r.Header("X-Hub-Signature") == "" {
		return signed(sha256Header, "sha256")(r, token)
	}
	return signed("X-Hub-Signature", "sha1", "sha256", "sha512")(r, token)
}

func nexus(r Request, token string) error {
	const header = "X-Nexus-Webhook-Signature"
	if r.Header(header) == "" {
		return fmt.Errorf("%w: the header %s is missing", ErrDenied, header)
	}
	return match(sha1.New, r.Body, r.Header(header), token)
}

// match compares in a time that does not depend on how much is right.
func match(by func() hash.Hash, body []byte, sum, token string) error {
	given, err := hex.DecodeString(sum)
	if err != nil {
		return fmt.Errorf("%w: the signature is not in hex digits", ErrDenied)
	}
	mac := hmac.New(by, []byte(token))
	mac.Write(body)
	if !hmac.Equal(given, mac.Sum(nil)) {
		return ErrDenied
	}
	return nil
}

// shown returns the proof by a header that has the token itself.
func shown(header string) func(Request, string) error {
	return func(r Request, token string) error {
		if r.Header(header) == "" {
			return fmt.Errorf("%w: the header %s is missing", ErrDenied, header)
		}
		given, want := sha256.Sum256([]byte(r.Header(header))), sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
			return ErrDenied
		}
		return nil
	}
}

// Open reports whether requests to a Receiver of a type prove nothing but that their sender knows the address.
func Open(kind string) bool { return proofs[kind] == nil && !ByIssuer(kind) }
