package cosign

import (
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/flotilla-io/flotilla/policies/provenance"
)

// RootKey is the key of the Secret that holds a trusted root.
const RootKey = "trusted_root.json"

// maxRoot is the size of a trusted root, in bytes.
const maxRoot = 512 << 10

// ParseRoot reads the data of a Secret with a trusted root, by which the identities count. Errors: ErrKeys, which shows none of it.
func ParseRoot(secret map[string][]byte, identities []provenance.Matcher) (*Trust, error) {
	text := secret[RootKey]
	switch {
	case len(text) == 0:
		return &Trust{}, badRoot("it has no key %s", RootKey)
	case len(text) > maxRoot:
		return &Trust{}, badRoot("%s has more than %d bytes", RootKey, maxRoot)
	}
	trusted, err := root.NewTrustedRootFromJSON(text)
	if err != nil {
		return &Trust{}, badRoot("%s is no trusted root of Sigstore, as cosign trusted-root create writes it", RootKey)
	}
	switch {
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return &Trust{}, badRoot("%s has no certificate authority, so that it vouches for nobody", RootKey)
	case len(trusted.RekorLogs()) == 0:
		return &Trust{}, badRoot("%s has no transparency log, which has to have each signature", RootKey)
	}
	return &Trust{root: trusted, fingerprint: fingerprint(text), identities: identities}, nil
}

// rootError is an ErrKeys about a trusted root.
type rootError struct{ text string }

func badRoot(format string, args ...any) error { return rootError{fmt.Sprintf(format, args...)} }

func (e rootError) Error() string { return "invalid trusted root: " + e.text }

// Is reports that it is an ErrKeys.
func (rootError) Is(target error) bool { return target == ErrKeys }
